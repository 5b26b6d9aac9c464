//===- ArtifactTest.cpp - Artifacts, whole and damaged -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArtifactPrograms.h"
#include "DamagedPlans.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <unistd.h>
#include <xxhash.h>

using namespace dovetail;
using namespace dovetail::test;
using runtime::Program;
using testing::HasSubstr;

namespace {

absl::StatusOr<std::vector<std::vector<float>>> run(std::shared_ptr<const Program> program) {
  std::mt19937_64 random(2);
  return runFloats(program, {randomFloats(random, 192), randomFloats(random, 48)});
}

std::string temporaryPath(const std::string &name) {
  return testing::TempDir() + "/dovetail-" + std::to_string(::getpid()) + "-" + name;
}

void write(const std::string &path, const Bytes &bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

} // namespace

TEST(Artifact, FileAndMemoryGiveTheSame) {
  Bytes bytes = makeProgram().artifact();
  auto fromMemory = Program::load(bytes);
  ASSERT_TRUE(fromMemory.ok()) << fromMemory.status();
  std::string path = temporaryPath("good.dvt");
  write(path, bytes);
  auto fromFile = Program::load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(fromFile.ok()) << fromFile.status();
  auto a = run(*fromMemory), b = run(*fromFile);
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(*a, *b);
}

TEST(Artifact, SectionsComeBack) {
  std::vector<std::byte> plan(100, std::byte(1)), first(10, std::byte(2)), second(70, std::byte(3));
  std::vector<runtime::Section> sections = {{runtime::SectionKind::Plan, {plan}},
                                            {runtime::SectionKind::Weights, {first, second}}};
  std::string path = temporaryPath("sections.dvt");
  ASSERT_TRUE(runtime::writeArtifact(path, sections).ok());
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::filesystem::remove(path);
  auto parsed =
      runtime::parseArtifact(absl::MakeConstSpan(reinterpret_cast<const std::byte *>(text.data()), text.size()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Bytes(parsed->plan.begin(), parsed->plan.end()), plan);
  EXPECT_TRUE(parsed->code.empty());
  EXPECT_EQ(runtime::pieceOffsets({10, 70}), (std::vector<uint64_t>{0, 64}));
  absl::Span<const std::byte> weights = parsed->weights.getBytes();
  ASSERT_EQ(weights.size(), 64u + 70u);
  EXPECT_EQ(weights[9], std::byte(2));
  EXPECT_EQ(weights[10], std::byte(0));
  EXPECT_EQ(weights[64], std::byte(3));
  EXPECT_EQ((reinterpret_cast<const char *>(weights.data()) - text.data()) % 4096, 0);
}

TEST(Artifact, DamageIsFoundInEachPartOfASection) {
  constexpr size_t part = runtime::checkedPartBytes;
  Bytes plan(8, std::byte(1)), weights(3 * part + 100);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::byte(i * 7 + i / 251);
  // Pieces end inside of parts, and gaps lie between them.
  absl::Span<const std::byte> all(weights);
  auto bytes = runtime::serializeArtifact(
      {runtime::Section{runtime::SectionKind::Plan, {plan}},
       runtime::Section{runtime::SectionKind::Weights, {all.first(100), all.subspan(100, 2 * part), all.last(part)}}});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto weightsOf = [&] {
    auto sections = runtime::parseArtifact(*bytes);
    EXPECT_TRUE(sections.ok()) << sections.status();
    return std::move(sections->weights);
  };
  for (int threads : {1, 2, 3, 8})
    EXPECT_TRUE(weightsOf().checkAll(threads).ok()) << threads << " threads";
  size_t size = weightsOf().getBytes().size(), begin = bytes->size() - size;
  for (size_t position : {size_t(0), part - 1, part, 2 * part + 5, 3 * part, size - 1}) {
    (*bytes)[begin + position] ^= std::byte(1);
    for (int threads : {1, 3}) {
      absl::Status status = weightsOf().checkAll(threads);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "byte " << position << ", " << threads << " threads";
      EXPECT_THAT(std::string(status.message()), HasSubstr("the checksum of the weights section"));
    }
    // Who reads other parts is not concerned, in whichever order they are read.
    runtime::CheckedSection section = weightsOf();
    for (int round : {0, 1})
      for (size_t first = 0; first < size; first += part / 2) {
        size_t length = std::min(part / 2, size - first);
        EXPECT_EQ(section.check(section.getBytes().subspan(first, length)).ok(), first / part != position / part)
            << "byte " << position << ", read from " << first << ", round " << round;
      }
    (*bytes)[begin + position] ^= std::byte(1);
  }
}

TEST(Artifact, ChecksumsOfPartsAreChecked) {
  Bytes good = makeProgram().artifact();
  runtime::ArtifactHeader header;
  std::memcpy(&header, good.data(), sizeof(header));
  size_t sums = sizeof(header) + header.sectionCount * sizeof(runtime::SectionEntry);
  good[sums] ^= std::byte(1);
  absl::Status status = runtime::parseArtifact(good).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the checksum of the header"));
}

TEST(Artifact, SessionsCheckTheWeightsThatTheyRead) {
  // Each row is a part; each of two ranks reads two of them.
  constexpr int64_t columns = runtime::checkedPartBytes / sizeof(float);
  PlanBuilder builder({2});
  auto rows = split(0, {0, 2, 4});
  std::mt19937_64 random(3);
  uint32_t weights = builder.constantValue({4, columns}, sharding(2, {{0, rows}}), randomFloats(random, 4 * columns));
  builder.output("weights", weights);
  Bytes bytes = builder.artifact();
  auto sections = runtime::parseArtifact(bytes);
  ASSERT_TRUE(sections.ok()) << sections.status();
  size_t begin = sections->weights.getBytes().data() - bytes.data();
  const runtime::ProgramOptions unchecked = {.executable = false, .checkWeights = false};
  for (int64_t row = 0; row < 4; ++row) {
    Bytes damaged = bytes;
    damaged[begin + row * columns * sizeof(float) + 17] ^= std::byte(4);
    EXPECT_EQ(Program::load(damaged).status().code(), absl::StatusCode::kDataLoss);
    auto program = Program::load(damaged, unchecked);
    ASSERT_TRUE(program.ok()) << program.status();
    const runtime::BufferInfo &buffer = (*program)->getPlan().bufferOf(weights);
    for (int rank : {0, 1}) {
      absl::Status status = (*program)->checkWeights(buffer, (*program)->getPlan().bufferBox(0, rank));
      EXPECT_EQ(status.ok(), row / 2 != rank) << "row " << row << ", rank " << rank << ": " << status;
    }
    // A column has some of each part.
    EXPECT_FALSE((*program)->checkWeights(buffer, layout::Box{{0, 4}, {5, 6}}).ok());
    EXPECT_EQ((*program)->checkWeights(buffer, layout::Box{{row, row + 1}, {columns - 1, columns}}).ok(), false);
    EXPECT_TRUE((*program)->checkWeights(buffer, layout::Box{{row, row}, {0, columns}}).ok());

    auto toRun = Program::load(damaged, {.checkWeights = false});
    ASSERT_TRUE(toRun.ok()) << toRun.status();
    absl::Status status = runFloats(*toRun, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank " + std::to_string(row / 2)));
  }
}

TEST(Artifact, CodeForSeveralArchitectures) {
  Bytes plan(8, std::byte(1)), ptx(5, std::byte(2)), old(70, std::byte(3)), newer(1, std::byte(4));
  using runtime::SectionKind;
  auto bytes = runtime::serializeArtifact(
      {runtime::Section{SectionKind::Plan, {plan}}, runtime::Section{SectionKind::Ptx, {ptx}, "sm_100"},
       runtime::Section{SectionKind::Cubin, {old}, "sm_80"}, runtime::Section{SectionKind::Cubin, {newer}, "sm_100"}});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto parsed = runtime::parseArtifact(*bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->code.size(), 3u);
  EXPECT_EQ(parsed->code[0].kind, SectionKind::Ptx);
  EXPECT_EQ(parsed->code[1].arch, "sm_80");
  EXPECT_EQ(Bytes(parsed->code[1].bytes.begin(), parsed->code[1].bytes.end()), old);
  EXPECT_EQ(Bytes(parsed->code[2].bytes.begin(), parsed->code[2].bytes.end()), newer);

  auto expect = [&](std::vector<runtime::Section> sections, const char *words) {
    sections.insert(sections.begin(), {SectionKind::Plan, {plan}});
    auto bytes = runtime::serializeArtifact(sections);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    absl::Status status = runtime::parseArtifact(*bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect({{SectionKind::Cubin, {old}, ""}}, "the cubin section is for architecture 0");
  expect({{SectionKind::Code, {old}, "sm_80"}}, "the code section is for architecture 80");
  EXPECT_FALSE(runtime::serializeArtifact({runtime::Section{SectionKind::Cubin, {old}, "sm_80"},
                                           runtime::Section{SectionKind::Cubin, {newer}, "sm_80"}})
                   .ok());
}

namespace {

/// The artifact with its header changed, whose checksum is made to fit.
Bytes withHeader(Bytes bytes, const std::function<void(runtime::ArtifactHeader &)> &change) {
  runtime::ArtifactHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  change(header);
  header.checksum = 0;
  std::memcpy(bytes.data(), &header, sizeof(header));
  size_t end = sizeof(header) + header.sectionCount * sizeof(runtime::SectionEntry);
  for (uint64_t i = 0; i < header.sectionCount; ++i) {
    runtime::SectionEntry entry;
    std::memcpy(&entry, bytes.data() + sizeof(header) + i * sizeof(entry), sizeof(entry));
    end += (entry.size + runtime::checkedPartBytes - 1) / runtime::checkedPartBytes * sizeof(uint64_t);
  }
  header.checksum = XXH3_64bits(bytes.data(), end);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

} // namespace

TEST(Artifact, FormatsAreReadBeforeAllElse) {
  constexpr uint32_t ours = runtime::artifactFormat;
  const Bytes good = makeProgram().artifact();
  auto with = [&](uint32_t format, uint32_t reader) {
    return withHeader(good, [&](runtime::ArtifactHeader &header) {
      header.format = format;
      header.oldestReader = reader;
    });
  };
  auto expect = [](const Bytes &bytes, absl::StatusCode code, const std::string &words) {
    absl::Status status = runtime::readHeader(bytes).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(Program::load(bytes).status(), status);
  };
  EXPECT_TRUE(Program::load(with(ours, ours)).ok());
  // Newer ones say themselves whether they can be read.
  for (uint32_t newer : {ours + 1, ours + 100, ~0u}) {
    EXPECT_TRUE(Program::load(with(newer, ours)).ok()) << newer;
    EXPECT_TRUE(Program::load(with(newer, 1)).ok()) << newer;
    std::string words = absl::StrCat("the artifact has format ", newer, ", which needs a Dovetail that reads format ",
                                     newer, " or newer, but Dovetail ");
    expect(with(newer, newer), absl::StatusCode::kFailedPrecondition, words);
    // A newer one may be anything behind that.
    Bytes beginning = with(newer, newer);
    beginning.resize(16);
    expect(beginning, absl::StatusCode::kFailedPrecondition, words);
  }
  expect(with(ours + 5, ours + 1), absl::StatusCode::kFailedPrecondition, absl::StrCat("reads format ", ours + 1));
  expect(with(ours + 5, ours + 1), absl::StatusCode::kFailedPrecondition, "use a newer Dovetail, or compile the model");
  // Older ones, which end otherwise, are not asked who can read them.
  for (uint32_t older : {0u, 1u, 8u, runtime::oldestReadFormat - 1})
    for (uint32_t reader : {0u, 1u, ours, ours + 1, ~0u})
      expect(with(older, reader), absl::StatusCode::kFailedPrecondition,
             absl::StrCat("the artifact has format ", older, ", but Dovetail "));
  expect(with(8, 2), absl::StatusCode::kFailedPrecondition, "; compile the model again with this version");
  expect(with(ours, ours + 1), absl::StatusCode::kDataLoss, "the file is damaged");
  expect(with(ours, 0), absl::StatusCode::kDataLoss, "the file is damaged");
  expect(with(ours + 3, 0), absl::StatusCode::kDataLoss, "the file is damaged");
  for (size_t size = 8; size < 40; ++size)
    expect(Bytes(good.begin(), good.begin() + size), absl::StatusCode::kDataLoss, "was cut short");
  for (size_t size = 0; size < 8; ++size)
    expect(Bytes(good.begin(), good.begin() + size), absl::StatusCode::kFailedPrecondition, "not a Dovetail artifact");
  // The oldest reader is a part of the header that the checksum holds.
  Bytes changed = with(ours + 1, ours);
  changed[12] ^= std::byte(8);
  EXPECT_EQ(Program::load(changed).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Artifact, SectionsThatNewerFormatsAddAreLeftOut) {
  Bytes plan(8, std::byte(1)), weights(100, std::byte(2)), added(5000, std::byte(3));
  using runtime::SectionKind;
  constexpr auto newKind = static_cast<SectionKind>(static_cast<uint32_t>(SectionKind::Packed) + 1);
  auto bytes = runtime::serializeArtifact({runtime::Section{SectionKind::Plan, {plan}},
                                           runtime::Section{newKind, {added}, "sm_7"},
                                           runtime::Section{SectionKind::Weights, {weights}}});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::Status status = runtime::parseArtifact(*bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("unknown section kind 7"));
  Bytes newer = withHeader(*bytes, [](runtime::ArtifactHeader &header) { ++header.format; });
  auto sections = runtime::parseArtifact(newer);
  ASSERT_TRUE(sections.ok()) << sections.status();
  EXPECT_EQ(sections->plan.size(), 8u);
  EXPECT_TRUE(sections->weights.checkAll(1).ok());
  EXPECT_TRUE(sections->code.empty());
  // Damage is found in it, too.
  newer[newer.size() - 4096 - 100] ^= std::byte(1);
  EXPECT_FALSE(runtime::parseArtifact(newer).ok());
}

TEST(Artifact, WriteFailsWithoutLeavingAFile) {
  std::string folder = temporaryPath("no-such-folder");
  absl::Status status = runtime::writeArtifact(folder + "/a.dvt", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.dvt"));
}

TEST(Artifact, ErrorsNameTheFileAndTheReason) {
  EXPECT_EQ(Program::load("/no/such/file.dvt").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Program::load("/").status().code(), absl::StatusCode::kNotFound);

  auto expect = [](const Bytes &bytes, absl::StatusCode code, const char *words) {
    std::string path = temporaryPath("bad.dvt");
    write(path, bytes);
    absl::Status status = Program::load(path).status();
    std::filesystem::remove(path);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  Bytes good = makeProgram().artifact();
  expect({}, absl::StatusCode::kFailedPrecondition, "not a Dovetail artifact");
  expect(Bytes(5000, std::byte(7)), absl::StatusCode::kFailedPrecondition, "not a Dovetail artifact");
  expect(Bytes(good.begin(), good.end() - 1), absl::StatusCode::kDataLoss, "cut short");
  Bytes flipped = good;
  flipped[5000] ^= std::byte(1);
  expect(flipped, absl::StatusCode::kDataLoss, "checksum");

  PlanBuilder foreign = makeProgram();
  foreign.plan.cpu_features = {"sse2", "time-travel"};
  expect(foreign.artifact(), absl::StatusCode::kFailedPrecondition, "time-travel");
  PlanBuilder target = makeProgram();
  target.plan.target = "cuda";
  expect(target.artifact(), absl::StatusCode::kDataLoss, "how it is launched on target 'cuda'");
  // Looking at it is possible nevertheless.
  EXPECT_TRUE(Program::load(foreign.artifact(), {/*executable=*/false}).ok());
}

TEST(ArtifactFuzz, DamagedFilesNeverCrash) {
  Bytes good = makeProgram().artifact();
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    Bytes bytes = good;
    damage(random, bytes);
    auto program = Program::load(bytes);
    EXPECT_TRUE(!program.ok() || bytes == good) << "seed " << seed << ": damage was not noticed";
  }
}
