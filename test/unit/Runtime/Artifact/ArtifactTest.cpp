//===- ArtifactTest.cpp - Artifacts, whole and damaged -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"
#include "DamagedPlans.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/Schedule.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>
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

using Bytes = std::vector<std::byte>;

/// A program with one of everything.
PlanBuilder makeProgram() {
  PlanBuilder builder({2, 2});
  builder.plan.cpu_features = {"sse2"};
  auto rows = split(0, {0, 3, 8}), columns = split(1, {0, 5, 6});
  layout::Sharding cut = sharding(4, {{2, rows}, {3, columns}});
  layout::Sharding held = sharding(4, {{2, windows(0, {{0, 4}, {2, 8}})}, {3, windows(1, {{0, 6}, {4, 6}})}});
  Shape shape = {1, 4, 8, 6};
  std::mt19937_64 random(1);
  uint32_t buffer = builder.buffer(shape, held, {0, 2, 3, 1});
  uint32_t in = builder.tensor(buffer, cut, "in"), extended = builder.tensor(buffer, held, "extended");
  uint32_t weights = builder.constantValue({4, 4, 3, 3}, sharding(4), randomFloats(random, 144));
  uint32_t bias = builder.constantValue({4, 1, 1}, sharding(3), randomFloats(random, 4));
  uint32_t convolved = builder.value(shape, cut, {0, 2, 3, 1}, "convolved");
  uint32_t pooled = builder.value(shape, cut, {0, 2, 3, 1}, "pooled");
  builder.input("image", in);
  builder.exchange(in, extended);
  ConvolutionStep convolution;
  convolution.input = extended;
  convolution.weights = weights;
  convolution.output = convolved;
  convolution.strides = convolution.dilations = convolution.pads = {1, 1};
  convolution.post_ops.push_back(std::make_unique<artifact::PostOpT>());
  convolution.post_ops[0]->tensor = bias;
  builder.library(std::move(convolution));
  PoolStep pool;
  pool.input = convolved;
  pool.output = pooled;
  pool.kernel = pool.strides = pool.dilations = {1, 1};
  pool.pads = {0, 0};
  builder.library(std::move(pool));
  uint32_t matrix = builder.value({8, 6}, sharding(2, {{0, rows}, {1, columns}}));
  uint32_t scale = builder.constantValue({6}, sharding(1), randomFloats(random, 6));
  uint32_t placed = builder.value({8, 6}, sharding(2, {{0, rows}, {1, columns}}));
  builder.input("matrix", matrix);
  builder.kernel("scaleAndPlace", {matrix, scale}, {placed}, {{8, rows}, {6, columns}}, 0);
  artifact::ReorderT reorder;
  reorder.source = placed;
  reorder.target = builder.value({8, 6}, sharding(2, {{0, rows}, {1, columns}}), {1, 0});
  uint32_t reordered = reorder.target;
  builder.library(std::move(reorder));
  builder.output("pooled", pooled);
  builder.output("placed", reordered);
  return builder;
}

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

TEST(Artifact, BlocksOfALaunch) {
  runtime::BlockShape shape;
  shape.tiles = {{0, 1}, {2, 4}};
  shape.tilesPerBlock = 3;
  // 5 times ceil(9 / 4) tiles.
  EXPECT_EQ(shape.blockCount({{2, 7}, {0, 100}, {1, 10}}, 1000), 5);
  EXPECT_EQ(shape.blockCount({{2, 7}, {0, 100}, {1, 10}}, 4), 4);
  EXPECT_EQ(shape.blockCount({{2, 2}, {0, 100}, {1, 10}}, 4), 1);
  int64_t large = int64_t(1) << 40;
  EXPECT_EQ(shape.blockCount({{0, large}, {}, {0, large}}, 1 << 20), 1 << 20);
  shape.tilesPerBlock = large;
  EXPECT_EQ(shape.blockCount({{0, large}, {}, {0, 8}}, 1 << 30), 2);
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

namespace {

/// Adds a count to a program, which is given as an input of that name.
void addCount(PlanBuilder &builder, const std::string &name, int64_t bound) {
  auto &count = builder.plan.counts.emplace_back(std::make_unique<artifact::CountT>());
  count->name = name;
  count->bound = bound;
  count->tensor = builder.value({}, sharding(0), {}, name, artifact::ElementType::I64);
  builder.input(name, count->tensor);
}

/// The program with two rows that are bounded: those of the image, which whoever runs it gives, and those of the loop
/// that reads the matrix.
PlanBuilder boundedProgram() {
  PlanBuilder builder = makeProgram();
  builder.placesWaits = false;
  addCount(builder, "boxes", 8);
  addCount(builder, "lines", 8);
  builder.plan.counts[0]->given = true;
  builder.plan.tensors[0]->counts = {-1, -1, 0, -1};
  builder.plan.steps[3]->action.AsKernelStep()->loops[0]->count = 1;
  return builder;
}

} // namespace

TEST(Artifact, BoundedDimensionsAreDecoded) {
  Bytes bytes = boundedProgram().artifact();
  auto sections = runtime::parseArtifact(bytes);
  ASSERT_TRUE(sections.ok()) << sections.status();
  auto plan = runtime::decodePlan(sections->plan, sections->weights.getBytes().size());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->counts.size(), 2u);
  EXPECT_EQ(plan->counts[0].name, "boxes");
  EXPECT_EQ(plan->counts[1].bound, 8);
  EXPECT_TRUE(plan->counts[0].isGiven);
  EXPECT_FALSE(plan->counts[1].isGiven);
  EXPECT_EQ(plan->tensors[0].counts, (std::vector<int32_t>{-1, -1, 0, -1}));
  EXPECT_TRUE(plan->tensors[1].counts.empty());
  const auto &kernel = std::get<runtime::KernelCall>(plan->steps[3].action);
  EXPECT_EQ(kernel.loops[0].count, 1);
  EXPECT_EQ(kernel.loops[1].count, -1);
}

TEST(Artifact, EndsOfLoopsAreDecoded) {
  PlanBuilder builder = boundedProgram();
  auto &loop = *builder.plan.steps[3]->action.AsKernelStep()->loops[0];
  loop.count = -1;
  loop.end = std::make_unique<artifact::LoopEndT>();
  loop.end->factors = {2};
  loop.end->added = 1;
  loop.end->divisor = 3;
  loop.end->least = 2;
  loop.end->step = 4;
  loop.end->beyond = 1;
  auto sections = runtime::parseArtifact(builder.artifact());
  ASSERT_TRUE(sections.ok()) << sections.status();
  auto plan = runtime::decodePlan(sections->plan, sections->weights.getBytes().size());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto &kernel = std::get<runtime::KernelCall>(plan->steps[3].action);
  ASSERT_TRUE(kernel.loops[0].end.has_value());
  EXPECT_FALSE(kernel.loops[1].end.has_value());
  // (2 n + 1) / 3, at least 2, up to a multiple of 4, and 1 more.
  for (auto [count, end] : {std::pair<int64_t, int64_t>(0, 5), {3, 5}, {6, 5}, {7, 9}, {8, 9}})
    EXPECT_EQ(kernel.loops[0].end->evaluate(std::array<int64_t, 2>{count, 99}.data()), end) << count;
}

/// The compiler writes no such names, but others may.
TEST(Artifact, SourceNamesAreClean) {
  PlanBuilder builder = boundedProgram();
  builder.plan.steps[0]->source = "a\x1b[2J\xff (net.py:8)";
  builder.plan.steps[1]->source = std::string(100000, 'a') + ".conv (net.py:8)";
  Bytes bytes = builder.artifact();
  auto sections = runtime::parseArtifact(bytes);
  ASSERT_TRUE(sections.ok()) << sections.status();
  auto plan = runtime::decodePlan(sections->plan, sections->weights.getBytes().size());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps[0].title(), "a\\x1b[2J\\xff (net.py:8)");
  EXPECT_EQ(plan->steps[1].title().size(), 120u);
  EXPECT_TRUE(plan->steps[1].title().ends_with(".conv (net.py:8)"));
  // A step without one has the name of its node.
  EXPECT_EQ(plan->steps[2].title(), builder.plan.steps[2]->name);
}

TEST(Artifact, OutputsHaveTheExtentsThatCountsSay) {
  PlanBuilder builder = makeProgram();
  addCount(builder, "rows", 8);
  builder.plan.tensors[builder.plan.outputs[1]->tensor]->counts = {0, -1};
  auto program = Program::load(builder.artifact());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->getPlan().outputs.size(), 2u);
  auto runner = runtime::ProgramRunner::create(*program);
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::vector<float> image(192), matrix(48, 1), pooled(192), placed(48);
  int64_t rows = 5;
  std::vector<runtime::FullTensor> inputs = {{image.data(), runtime::ElementType::F32, {1, 4, 8, 6}},
                                             {matrix.data(), runtime::ElementType::F32, {8, 6}},
                                             {&rows, runtime::ElementType::I64, {}}};
  std::vector<runtime::FullTensor> outputs = {{pooled.data(), runtime::ElementType::F32, {1, 4, 8, 6}},
                                              {placed.data(), runtime::ElementType::F32, {8, 6}}};
  EXPECT_EQ((*runner)->getOutputShape(1), (Shape{8, 6}));
  for (rows = 5; rows >= 0; rows -= 5) {
    ASSERT_TRUE((*runner)->run(inputs, outputs).ok());
    EXPECT_EQ((*runner)->getOutputShape(0), (Shape{1, 4, 8, 6}));
    EXPECT_EQ((*runner)->getOutputShape(1), (Shape{rows, 6}));
  }
  rows = 9;
  absl::Status status = (*runner)->run(inputs, outputs);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("count 'rows' is 9, but at most 8"));
}

TEST(Artifact, ProgramsWithBoundedLoopsAreRefused) {
  for (bool executable : {true, false}) {
    absl::Status status = Program::load(boundedProgram().artifact(), {executable}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(runtime::exitCodeOf(status), 7);
    EXPECT_THAT(std::string(status.message()), HasSubstr("runtime does not support: 'lines' (at most 8);"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("newer compiler"));
  }
}

TEST(Artifact, PlansThatMakeNoSenseAreRefused) {
  auto expect = [](const char *words, auto change) {
    PlanBuilder builder = makeProgram();
    change(builder);
    absl::Status status = Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  auto expectBounded = [&](const char *words, auto change) {
    expect(words, [&](PlanBuilder &b) {
      b = boundedProgram();
      change(b);
    });
  };
  auto loop = [](PlanBuilder &b) -> artifact::LoopT & { return *b.plan.steps[3]->action.AsKernelStep()->loops[0]; };
  expectBounded("count 'boxes' has an impossible bound -1", [](PlanBuilder &b) { b.plan.counts[0]->bound = -1; });
  expectBounded("count 'boxes' uses tensor 99", [](PlanBuilder &b) { b.plan.counts[0]->tensor = 99; });
  expectBounded("count 'lines' is not a scalar of I64", [](PlanBuilder &b) { b.plan.counts[1]->tensor = 0; });
  expectBounded("has counts for 1 of 4 dimensions", [](PlanBuilder &b) { b.plan.tensors[0]->counts = {0}; });
  expectBounded("dimension 2 is bounded by count 2 of 2", [](PlanBuilder &b) { b.plan.tensors[0]->counts[2] = 2; });
  expectBounded("dimension 2 is bounded by count -2 of 2", [](PlanBuilder &b) { b.plan.tensors[0]->counts[2] = -2; });
  expectBounded("dimension 1 of extent 4 is bounded by count 'lines' of bound 8",
                [](PlanBuilder &b) { b.plan.tensors[0]->counts[1] = 1; });
  expectBounded("count 'boxes' bounds inputs, but is computed",
                [](PlanBuilder &b) { b.plan.counts[0]->given = false; });
  expectBounded("count 'lines' is neither computed nor given by an input",
                [](PlanBuilder &b) { b.plan.counts[1]->given = true; });
  auto expectEnd = [&](auto change) {
    expectBounded("loop 0 has an impossible end", [&](PlanBuilder &b) {
      loop(b).end = std::make_unique<artifact::LoopEndT>();
      change(*loop(b).end);
    });
  };
  expectEnd([](artifact::LoopEndT &end) { end.divisor = 0; });
  expectEnd([](artifact::LoopEndT &end) { end.step = 0; });
  expectEnd([](artifact::LoopEndT &end) { end.least = -1; });
  expectEnd([](artifact::LoopEndT &end) { end.beyond = -1; });
  expectEnd([](artifact::LoopEndT &end) { end.factors = {-1}; });
  // The second count is computed, and there is no third one.
  expectEnd([](artifact::LoopEndT &end) { end.factors = {1, 1}; });
  expectEnd([](artifact::LoopEndT &end) { end.factors = {1, 0, 0}; });
  expectEnd([](artifact::LoopEndT &end) { end.factors = {int64_t(1) << 61}; });
  expectEnd([](artifact::LoopEndT &end) { end.added = std::numeric_limits<int64_t>::min() + 1; });
  // An input of which the length varies may be fed an output that always has as much.
  auto feedImage = [](PlanBuilder &b) {
    b.plan.inputs[0]->fed_by = 0;
    b.plan.inputs[0]->next = b.plan.inputs[0]->tensor;
  };
  expectBounded("of the inputs with length 'boxes' some are fed back, but 'matrix' is not", [&](PlanBuilder &b) {
    feedImage(b);
    b.plan.tensors[b.plan.inputs[1]->tensor]->counts = {0, -1};
  });
  expectBounded("input 'matrix' is fed by output 'placed', which has another type or shape", [&](PlanBuilder &b) {
    feedImage(b);
    b.plan.tensors[b.plan.outputs[1]->tensor]->counts = {1, -1};
    b.plan.inputs[1]->fed_by = 1;
    b.plan.inputs[1]->next = b.plan.inputs[1]->tensor;
  });
  expectBounded("loop 0 is bounded by count 7 of 2", [&](PlanBuilder &b) { loop(b).count = 7; });
  expectBounded("loop 0 of extent 8 is bounded by count 'lines' of bound 9",
                [&](PlanBuilder &b) { b.plan.counts[1]->bound = 9; });
  expect("dimension 2 is bounded by count 0 of 0", [](PlanBuilder &b) { b.plan.tensors[0]->counts = {-1, -1, 0, -1}; });
  expect("uses tensor 99", [](PlanBuilder &b) {
    auto &check =
        b.plan.steps[3]->action.AsKernelStep()->checks.emplace_back(std::make_unique<artifact::IndexCheckT>());
    check->node = "gather";
    check->extent = 1;
    check->tensor = 99;
  });
  expect("tensor 0", [](PlanBuilder &b) { b.plan.tensors[0]->buffer = 77; });
  expect("uses tensor 99", [](PlanBuilder &b) { b.plan.inputs[0]->tensor = 99; });
  expect("no kernel 'absent'", [](PlanBuilder &b) { b.kernel("absent", {}, {}, {}); });
  expect("two inputs called", [](PlanBuilder &b) { b.plan.inputs[1]->name = "image"; });
  expect("impossible extent", [](PlanBuilder &b) { b.plan.buffers[0]->shape[2] = int64_t(1) << 50; });
  expect("impossible extent", [](PlanBuilder &b) { b.plan.buffers[0]->shape[2] = -1; });
  expect("unknown precision", [](PlanBuilder &b) { b.plan.math = static_cast<artifact::MathMode>(4); });
  expect("size 0", [](PlanBuilder &b) { b.plan.mesh[0]->size = 0; });
  expect("ranks", [](PlanBuilder &b) { b.plan.mesh[0]->size = int64_t(1) << 40; });
  expect("permutation", [](PlanBuilder &b) { b.plan.buffers[0]->format->order[0] = 1; });
  auto blocked = [](int dim, int block) {
    return [dim, block](PlanBuilder &b) {
      b.plan.buffers[0]->format->block_dim = static_cast<int8_t>(dim);
      b.plan.buffers[0]->format->block = block;
    };
  };
  expect("buffer 0 has a format that has blocks of an impossible size", blocked(1, 1));
  expect("buffer 0 has a format that has blocks of an impossible size", blocked(1, 1025));
  expect("buffer 0 has a format that has blocks of a dimension that does not exist", blocked(4, 16));
  expect("buffer 0 has a format that has blocks of a dimension that does not exist", blocked(-2, 16));
  expect("input 'image' lies in blocks", blocked(1, 16));
  expect("blocks of an impossible size", [&](PlanBuilder &b) {
    b.plan.buffers[0]->shape = {1, 1, 1, int64_t(1) << 39};
    b.plan.buffers[0]->shape[0] = int64_t(1) << 17;
    b.plan.buffers[0]->dims[2] = std::make_unique<artifact::DimT>();
    blocked(1, 1024)(b);
  });
  expect("outside of its buffer", [](PlanBuilder &b) { b.plan.buffers[0]->dims[2]->pieces[0] = {0, 2}; });
  expect("bytes of data", [](PlanBuilder &b) { b.plan.buffers[1]->data_size += 4; });
  expect("outside of the weights", [](PlanBuilder &b) { b.plan.buffers[1]->data_offset = 1u << 30; });
  expect("misaligned", [](PlanBuilder &b) { b.plan.buffers[1]->data_offset += 1; });
  expect("before anything is written", [](PlanBuilder &b) { b.plan.steps.erase(b.plan.steps.begin() + 1); });
  expect("divides loop 5", [](PlanBuilder &b) { b.plan.steps[3]->action.AsKernelStep()->parallel_loop = 5; });
  expect("reads a tensor of [1, 4, 8, 6] as one of other extents",
         [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->loops[4]->extent = 3; });
  expect("impossible divisor", [](PlanBuilder &b) {
    b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->input_access->dims[2]->divisor = 0;
  });
  expect("without its tensor", [](PlanBuilder &b) {
    b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->post_ops[0]->tensor = -1;
  });
  expect("writes over its own operand",
         [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->output = 0; });
  expect("constant", [](PlanBuilder &b) { b.plan.steps[3]->action.AsKernelStep()->writes[0] = 2; });
  auto blocksOf = [](PlanBuilder &b) -> artifact::BlocksT & {
    b.plan.target = "device";
    auto &blocks = b.plan.steps[3]->action.AsKernelStep()->blocks;
    blocks = std::make_unique<artifact::BlocksT>();
    blocks->threads = 32;
    blocks->tiles.push_back(std::make_unique<artifact::TileLoopT>());
    return *blocks;
  };
  PlanBuilder device = makeProgram();
  blocksOf(device);
  EXPECT_TRUE(Program::load(device.artifact()).ok());
  expect("has blocks on target 'cpu'", [&](PlanBuilder &b) {
    blocksOf(b);
    b.plan.target = "cpu";
  });
  expect("not the name of a target", [&](PlanBuilder &b) {
    blocksOf(b);
    b.plan.target = "../device";
  });
  expect("blocks of 0 threads", [&](PlanBuilder &b) { blocksOf(b).threads = 0; });
  expect("blocks of 1025 threads", [&](PlanBuilder &b) { blocksOf(b).threads = 1025; });
  expect("blocks of 0 tiles", [&](PlanBuilder &b) { blocksOf(b).tiles_per_block = 0; });
  expect("-8 bytes of shared memory", [&](PlanBuilder &b) { blocksOf(b).shared_bytes = -8; });
  auto unbounded = [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->memory.reset(); };
  expect("does not bound its memory", unbounded);
  expect("does not bound its memory", [&](PlanBuilder &b) {
    blocksOf(b);
    unbounded(b);
  });
  auto packed = [](PlanBuilder &b) -> std::vector<int64_t> & {
    return b.plan.steps[1]->action.AsLibraryStep()->memory->packed;
  };
  expect("has bounds of its memory for 5 ranks", [&](PlanBuilder &b) { packed(b).resize(5); });
  expect("bounds its memory by an impossible number of bytes, -8", [&](PlanBuilder &b) { packed(b)[0] = -8; });
  expect("bounds its memory by an impossible number of bytes, 1099511627777",
         [&](PlanBuilder &b) { packed(b)[0] = (int64_t(1) << 40) + 1; });
  auto divided = [](PlanBuilder &b) -> artifact::DivisionT & {
    auto &division = b.plan.steps[1]->action.AsLibraryStep()->division;
    return *(division = std::make_unique<artifact::DivisionT>());
  };
  expect("divides loop 9, which is not a dimension of its output", [&](PlanBuilder &b) { divided(b).loop = 9; });
  expect("parts of 1 iterations at multiples of 0", [&](PlanBuilder &b) { divided(b).step = 0; });
  expect("parts of 1 iterations at multiples of 2", [&](PlanBuilder &b) { divided(b).step = 2; });
  expect("bounds its memory by an impossible number of bytes, -1",
         [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->memory->thread_packed[0] = -1; });
  expect("tiles over loop 2 of 2", [&](PlanBuilder &b) { blocksOf(b).tiles[0]->loop = 2; });
  expect("tiles over loop 0 of 2 twice",
         [&](PlanBuilder &b) { blocksOf(b).tiles.push_back(std::make_unique<artifact::TileLoopT>()); });
  expect("in steps of 0", [&](PlanBuilder &b) { blocksOf(b).tiles[0]->step = 0; });
  expect("no step writes output", [](PlanBuilder &b) { b.plan.steps.clear(); });
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

TEST(ArtifactFuzz, DamagedPlansWithGoodChecksumsNeverCrash) {
  auto [loaded, started] = damagePlans(makeProgram().artifact(), 4000);
  EXPECT_GT(loaded, 100);
  EXPECT_GT(started, 50);
}

namespace {

/// Each kind of exchange once: a reduction in two phases, one in one, and a halo.
PlanBuilder exchanger() {
  PlanBuilder builder = hostBuilder({2, 2});
  Shape shape = {8, 6};
  auto sum = sharding(2, {}, {1}, layout::ReductionKind::Sum), all = sharding(2);
  uint32_t parts = builder.value(shape, sum), total = builder.value(shape, all), again = builder.value(shape, all);
  builder.kernel("increment", {}, {parts}, {});
  builder.exchangeInTwo(parts, total);
  builder.exchange(parts, again);
  uint32_t halo = builder.buffer(shape, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
  uint32_t own = builder.tensor(halo, sharding(2, {{0, split(0, {0, 4, 8})}})),
           wide = builder.tensor(halo, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
  builder.exchange(again, own);
  builder.exchange(own, wide);
  builder.output("total", total);
  builder.output("wide", own);
  return builder;
}

artifact::ExchangeStepT &exchangeOf(PlanBuilder &builder, int step) {
  return *builder.plan.steps[step]->action.AsExchangeStep();
}

} // namespace

TEST(Artifact, PartsOfLaunchesThatDoNotFitAreRefused) {
  auto load = [](const layout::DimSharding &first, const layout::DimSharding &second) {
    absl::Status status;
    // A wait between the parts makes no difference.
    for (bool waits : {false, true}) {
      PlanBuilder builder = hostBuilder({2});
      builder.placesWaits = false;
      uint32_t in = builder.value({8, 6}, sharding(2));
      uint32_t value = builder.value({8, 6}, sharding(2, {{0, split(0, {0, 4, 8})}}));
      builder.input("in", in);
      builder.exchange(in, in);
      builder.kernel("increment", {}, {value}, {{8, first}, {6, {}}});
      if (waits)
        builder.wait({0}, {0});
      builder.kernel("increment", {}, {value}, {{8, second}, {6, {}}});
      builder.output("value", value);
      absl::Status loaded = Program::load(builder.artifact()).status();
      if (waits)
        EXPECT_EQ(loaded.code(), status.code());
      status = loaded;
    }
    return status;
  };
  // The interior, then a boundary; rank 1 has none in the second case.
  EXPECT_TRUE(load(windows(0, {{0, 3}, {5, 8}}), windows(0, {{3, 4}, {4, 5}})).ok());
  EXPECT_TRUE(load(windows(0, {{0, 3}, {4, 8}}), windows(0, {{3, 4}, {8, 8}})).ok());
  for (auto second : {windows(0, {{3, 4}, {4, 6}}), windows(0, {{3, 4}, {0, 0}}), windows(0, {{3, 4}, {3, 5}})}) {
    absl::Status status = load(windows(0, {{0, 3}, {5, 8}}), second);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("do not compute each element once on rank 1"));
  }
}

TEST(Artifact, PartsThatAreSentBeforeTheyAreComputedAreRefused) {
  // Ranks compute what they send, then the rest. Rank 0 sends row 3, and rank 1 row 4.
  enum class Kind { Kernel, Pool };
  auto load = [](Kind kind, const layout::DimSharding &first, const layout::DimSharding &second, bool waits,
                 bool isWithin = true) {
    PlanBuilder builder = hostBuilder({2});
    builder.placesWaits = false;
    Shape shape = {1, 1, 8};
    layout::DimSharding rows = split(0, {0, 4, 8}), held = windows(0, {{0, 5}, {3, 8}});
    uint32_t in = builder.value(shape, sharding(3, {{2, rows}})),
             memory = builder.buffer(shape, sharding(3, {{2, held}}));
    uint32_t own = builder.tensor(memory, sharding(3, {{2, rows}})),
             wide = builder.tensor(memory, sharding(3, {{2, held}}));
    if (!isWithin)
      wide = builder.value(shape, sharding(3, {{2, held}}));
    builder.input("in", in);
    auto compute = [&](const layout::DimSharding &part) {
      if (kind == Kind::Kernel)
        return builder.kernel("increment", {in}, {own}, {{1, {}}, {1, {}}, {8, part}});
      PoolStep step;
      step.input = in;
      step.output = own;
      step.kernel = step.strides = step.dilations = {1};
      step.pads = {0};
      builder.library(std::move(step));
      auto &pieces = builder.plan.steps.back()->action.AsLibraryStep()->call.AsPool()->loops[2]->dim->pieces;
      pieces.clear();
      for (layout::Interval piece : part.pieces)
        pieces.emplace_back(piece.lo, piece.hi);
    };
    compute(first);
    builder.exchange(own, wide);
    if (waits)
      builder.wait({1}, {1});
    compute(second);
    if (!waits)
      builder.wait({1}, {1});
    builder.output("own", own);
    builder.output("wide", wide);
    return Program::load(builder.artifact()).status();
  };
  layout::DimSharding borders = windows(0, {{3, 4}, {4, 5}}), interior = windows(0, {{0, 3}, {5, 8}});
  for (Kind kind : {Kind::Kernel, Kind::Pool})
    for (bool waits : {false, true}) {
      absl::Status status = load(kind, borders, interior, waits);
      EXPECT_TRUE(status.ok()) << status;
      auto refuse = [&](const layout::DimSharding &first, const layout::DimSharding &second, const std::string &what) {
        absl::Status status = load(kind, first, second, waits);
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(what));
      };
      // Rank 1 sends what comes later; it computes an element twice, or never.
      std::string sent = "between it and other parts of the same step, sends or receives on rank 1";
      refuse(windows(0, {{3, 4}, {5, 8}}), windows(0, {{0, 3}, {4, 5}}), sent);
      refuse(borders, windows(0, {{0, 3}, {4, 8}}), "do not compute each element once on rank 1");
      refuse(borders, windows(0, {{0, 3}, {6, 8}}), "do not compute each element once on rank 1");
      // What is complete may be written once more.
      layout::DimSharding rows = split(0, {0, 4, 8});
      status = load(kind, rows, rows, waits);
      EXPECT_TRUE(status.ok()) << status;
      // An exchange into another buffer copies the rank's own part, too.
      status = load(kind, borders, interior, waits, /*isWithin=*/false);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("sends or receives on rank 0"));
    }
}

TEST(Artifact, RepeatsThatDoNotFitAreRefused) {
  // As many halos as there are iterations.
  auto build = [](auto change) {
    PlanBuilder builder = hostBuilder({2});
    builder.placesWaits = false;
    auto add = [&](auto step) {
      auto &entry = builder.plan.steps.emplace_back(std::make_unique<artifact::StepT>());
      entry->name = "repeat";
      entry->action.Set(std::move(step));
    };
    uint32_t halo = builder.buffer({8, 6}, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
    uint32_t own = builder.tensor(halo, sharding(2, {{0, split(0, {0, 4, 8})}})),
             wide = builder.tensor(halo, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
    uint32_t on = builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool);
    uint32_t result = builder.value({8, 6}, sharding(2, {{0, split(0, {0, 4, 8})}}));
    builder.input("on", on);
    builder.input("own", own);
    artifact::RepeatStepT repeat;
    repeat.condition = on;
    add(repeat);
    add(repeat);
    builder.exchange(own, wide);
    builder.wait({2}, {2});
    builder.kernel("increment", {}, {result}, {{8, split(0, {0, 4, 8})}, {6, {}}});
    add(artifact::EndStepT());
    add(artifact::EndStepT());
    builder.output("own", own);
    change(builder, result);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(build([](PlanBuilder &, uint32_t) {}).ok());
  auto expect = [&](const char *words, auto change) {
    absl::Status status = build(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect("step 0 'repeat' repeats or chooses steps without an end",
         [](PlanBuilder &b, uint32_t) { b.plan.steps.pop_back(); });
  expect("step 7 'repeat' ends no steps", [](PlanBuilder &b, uint32_t) {
    b.plan.steps.push_back(std::make_unique<artifact::StepT>(*b.plan.steps.back()));
  });
  expect("step 0 'repeat' uses tensor 99",
         [](PlanBuilder &b, uint32_t) { b.plan.steps[0]->action.AsRepeatStep()->condition = 99; });
  expect("step 1 'repeat' has a condition that is not a scalar of Bool", [](PlanBuilder &b, uint32_t) {
    uint32_t other = b.value({1}, sharding(1), {}, "other", artifact::ElementType::Bool);
    b.input("other", other);
    b.plan.steps[1]->action.AsRepeatStep()->condition = other;
  });
  expect("step 1 'repeat' has a condition that is not a scalar of Bool", [](PlanBuilder &b, uint32_t) {
    uint32_t other = b.value({}, sharding(0), {}, "other", artifact::ElementType::U8);
    b.input("other", other);
    b.plan.steps[1]->action.AsRepeatStep()->condition = other;
  });
  expect("step 1 'repeat' reads tensor", [](PlanBuilder &b, uint32_t) {
    b.plan.steps[1]->action.AsRepeatStep()->condition =
        b.value({}, sharding(0), {}, "other", artifact::ElementType::Bool);
  });
  // There may be no iteration.
  expect("no step writes output 'result'", [](PlanBuilder &b, uint32_t result) { b.output("result", result); });
  expect("waits for step 2 of another iteration", [](PlanBuilder &b, uint32_t) {
    std::swap(b.plan.steps[3], b.plan.steps[4]);
    std::swap(b.plan.steps[4], b.plan.steps[5]);
  });
  expect("prologue step 1 'repeat' repeats or chooses steps, but not of a run", [](PlanBuilder &b, uint32_t) {
    uint32_t constant = b.buffer({}, sharding(0), {}, artifact::BufferKind::Persistent, artifact::ElementType::Bool);
    uint32_t on = b.tensor(constant, sharding(0));
    b.kernel("increment", {}, {on}, {}, -1, /*inPrologue=*/true);
    b.plan.prologue.push_back(std::make_unique<artifact::StepT>(*b.plan.steps[0]));
    b.plan.prologue.push_back(std::make_unique<artifact::StepT>(*b.plan.steps.back()));
    b.plan.prologue[1]->action.AsRepeatStep()->condition = on;
  });
}

TEST(Artifact, WhatIsChosenIsReadByKernelsAlone) {
  auto build = [](auto change) {
    PlanBuilder builder = hostBuilder({1});
    builder.placesWaits = false;
    auto add = [&](auto step) {
      auto &entry = builder.plan.steps.emplace_back(std::make_unique<artifact::StepT>());
      entry->name = "choose";
      entry->action.Set(std::move(step));
    };
    std::vector<std::pair<int64_t, layout::DimSharding>> loops = {{8, {}}};
    uint32_t on = builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool);
    uint32_t chosen = builder.value({8}, sharding(1), {}, "chosen"), result = builder.value({8}, sharding(1));
    builder.input("on", on);
    artifact::ChooseStepT choose;
    choose.condition = on;
    add(choose);
    builder.kernel("increment", {}, {chosen}, loops);
    add(artifact::EndStepT());
    builder.kernel("increment", {chosen}, {result}, loops);
    builder.output("result", result);
    change(builder, chosen, result);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(build([](PlanBuilder &, uint32_t, uint32_t) {}).ok());
  auto expect = [&](const char *words, auto change) {
    absl::Status status = build(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect("'chosen', which is written only if a condition holds", [](PlanBuilder &b, uint32_t chosen, uint32_t result) {
    artifact::ReorderT reorder;
    reorder.source = chosen;
    reorder.target = result;
    b.library(reorder);
  });
  expect("no step writes output 'chosen'",
         [](PlanBuilder &b, uint32_t chosen, uint32_t) { b.output("chosen", chosen); });
}

TEST(Artifact, ExchangesThatDoNotFitAreRefused) {
  using artifact::ExchangeKind;
  auto good = exchanger().program();
  ASSERT_TRUE(good);
  std::vector<layout::ExchangeKind> kinds;
  for (const runtime::StepInfo &step : good->getPlan().steps)
    if (const auto *call = std::get_if<runtime::ExchangeCall>(&step.action))
      kinds.push_back(call->kind);
  using layout::ExchangeKind::AllGather, layout::ExchangeKind::AllReduce, layout::ExchangeKind::Messages,
      layout::ExchangeKind::ReduceScatter;
  EXPECT_EQ(kinds, (std::vector{ReduceScatter, AllGather, AllReduce, Messages, Messages}));

  auto expect = [](const char *words, auto change) {
    PlanBuilder builder = exchanger();
    builder.placesWaits = false;
    change(builder);
    absl::Status status = Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  auto become = [&](const char *words, int step, ExchangeKind kind) {
    expect(words, [&](PlanBuilder &b) { exchangeOf(b, step).kind = kind; });
  };
  become("unknown kind 5", 1, static_cast<ExchangeKind>(5));
  become("of kind packed all-gather: contributions are combined", 1, ExchangeKind::PackedGather);
  become("step 1 'exchange1': the exchange is not of kind all-gather: contributions are combined", 1,
         ExchangeKind::AllGather);
  become("of kind all-reduce: another box is needed on rank 1", 1, ExchangeKind::AllReduce);
  become("of kind reduce-scatter: the exchange combines no elements", 2, ExchangeKind::ReduceScatter);
  become("of kind reduce-scatter: parts do not follow each other in memory", 3, ExchangeKind::ReduceScatter);
  become("of kind all-gather: no pieces are collected", 5, ExchangeKind::AllGather);
  expect("of kind all-gather: parts differ in size", [](PlanBuilder &b) {
    uint32_t part = exchangeOf(b, 2).moves[0]->source;
    b.plan.tensors[part]->dims[0]->pieces = {{0, 3}, {3, 8}};
    exchangeOf(b, 1).kind = ExchangeKind::Messages;
  });
  expect("an order that is not a permutation", [](PlanBuilder &b) { exchangeOf(b, 1).moves[0]->order = {0, 0}; });
  expect("an order that is not a permutation", [](PlanBuilder &b) { exchangeOf(b, 1).moves[0]->order = {0}; });
  expect("an order that is not a permutation", [](PlanBuilder &b) { exchangeOf(b, 1).moves[0]->order = {0, 1, 2}; });
  expect("is between memories of different blocks", [](PlanBuilder &b) {
    b.setBlocks(exchangeOf(b, 4).moves[0]->target, 1, 4);
    exchangeOf(b, 4).kind = ExchangeKind::Messages;
  });
  expect("moves nothing", [](PlanBuilder &b) { exchangeOf(b, 1).moves.clear(); });
  // Another reduction, with the last one's.
  auto add = [](PlanBuilder &b, int step, int other) {
    auto &move = exchangeOf(b, step).moves.emplace_back(std::make_unique<artifact::MoveT>());
    *move = *exchangeOf(b, other).moves[0];
    exchangeOf(b, step).kind = ExchangeKind::Messages;
  };
  expect("step 1 'exchange1' is one reduce-scatter of 2 tensors", [&](PlanBuilder &b) {
    add(b, 1, 3);
    exchangeOf(b, 1).kind = ExchangeKind::ReduceScatter;
  });
  expect("step 1 'exchange1' moves two tensors into buffer 1", [&](PlanBuilder &b) { add(b, 1, 1); });
  expect("step 4 'exchange4' overwrites elements that it moves from buffer 2", [&](PlanBuilder &b) { add(b, 4, 3); });
  expect("step 4 'exchange4' has messages in an order that is not a permutation", [&](PlanBuilder &b) {
    add(b, 4, 1);
    exchangeOf(b, 4).moves[1]->order = {1, 1};
  });
  expect("step 4 'exchange4' uses tensor 99", [&](PlanBuilder &b) {
    add(b, 4, 1);
    exchangeOf(b, 4).moves[1]->target = 99;
  });
  expect("step 4 'exchange4' has a target of another shape or type", [&](PlanBuilder &b) {
    add(b, 4, 1);
    exchangeOf(b, 4).moves[1]->target = b.value({3, 3}, sharding(2));
  });
  // Of two axes, over one and over both.
  auto loadGathers = [](bool areAlike) {
    PlanBuilder builder({2, 2});
    builder.placesWaits = false;
    layout::Sharding both =
                         sharding(1, {{0, layout::DimSharding::fromCuts({0, 1}, std::vector<int64_t>{0, 2, 4, 6, 8})}}),
                     half = sharding(1, {{0, split(0, {0, 4, 8})}});
    uint32_t in = builder.value({8}, both), a = builder.value({8}, half),
             b = builder.value({8}, areAlike ? half : sharding(1));
    builder.input("in", in);
    builder.exchange(in, a);
    builder.addMove(in, b);
    builder.packMoves();
    builder.wait({0}, {0});
    builder.output("a", a);
    builder.output("b", b);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(loadGathers(true).ok());
  EXPECT_THAT(std::string(loadGathers(false).message()), HasSubstr("among different groups of ranks at once"));
  PlanBuilder several = exchanger();
  add(several, 1, 3);
  add(several, 4, 1);
  EXPECT_TRUE(several.program());
  // Messages do for everything, in any order.
  PlanBuilder messages = exchanger();
  for (int step = 1; step <= 5; ++step) {
    exchangeOf(messages, step).kind = ExchangeKind::Messages;
    exchangeOf(messages, step).moves[0]->order = {1, 0};
  }
  EXPECT_TRUE(messages.program());
}

TEST(Artifact, CollectivesOnStripsOfMappedConstantsAreRefused) {
  layout::DimSharding rows = split(0, {0, 2, 4}), columns = split(1, {0, 3, 6});
  // Ranks hold boxes of a value by themselves, in one piece; of a constant they see strips of the whole.
  auto load = [&](bool isConstant) {
    PlanBuilder builder({2, 2});
    layout::Sharding boxes = sharding(2, {{0, rows}, {1, columns}});
    uint32_t in =
        isConstant ? builder.constantValue({4, 6}, boxes, std::vector<float>(24, 1)) : builder.value({4, 6}, boxes);
    uint32_t out = builder.value({4, 6}, sharding(2, {{1, columns}}));
    if (!isConstant)
      builder.input("in", in);
    builder.exchange(in, out);
    EXPECT_EQ(exchangeOf(builder, 0).kind, artifact::ExchangeKind::AllGather);
    builder.output("out", out);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(load(false).ok());
  absl::Status status = load(true);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of kind all-gather: parts do not follow each other in memory"));
}

TEST(ArtifactFuzz, DamagedExchangesStayInMemory) {
  Bytes good = exchanger().artifact();
  auto sections = runtime::parseArtifact(good);
  ASSERT_TRUE(sections.ok());
  int collectives = 0, refused = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Bytes plan(sections->plan.begin(), sections->plan.end());
    for (int change = 1 + random() % 2; change > 0; --change) {
      uint8_t value = random() % 2 ? random() % 8 : random();
      std::memcpy(plan.data() + random() % plan.size(), &value, 1);
    }
    auto decoded = runtime::decodePlan(plan, 0);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << decoded.status();
      ++refused;
      continue;
    }
    for (const runtime::StepInfo &step : decoded->steps) {
      const auto *call = std::get_if<runtime::ExchangeCall>(&step.action);
      if (!call || call->kind == layout::ExchangeKind::Messages || decoded->mesh.numRanks() > 64)
        continue;
      ++collectives;
      runtime::MoveScheduler scheduler(*decoded, call->moves[0]);
      for (int rank = 0; rank < decoded->mesh.numRanks(); ++rank) {
        // All of a group agree on it, and nobody is left waiting.
        layout::CollectiveGroup group = scheduler.group(call->kind, rank);
        EXPECT_NE(std::find(group.members.begin(), group.members.end(), rank), group.members.end());
        ASSERT_EQ(group.parts.size(), group.members.size());
        int64_t all = 0;
        for (size_t i = 0; i < group.parts.size(); ++i) {
          EXPECT_EQ(scheduler.group(call->kind, group.members[i]).members, group.members);
          if (call->kind != layout::ExchangeKind::PackedGather)
            EXPECT_EQ(group.parts[i].volume(), group.parts[0].volume());
          all += group.parts[i].volume();
        }
        bool gathers = layout::isGather(call->kind);
        if (call->kind != layout::ExchangeKind::AllReduce)
          EXPECT_LE(
              all,
              decoded->bufferBox(decoded->tensors[gathers ? call->moves[0].target : call->moves[0].source].buffer, rank)
                  .volume());
      }
    }
  }
  EXPECT_GT(collectives, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(ArtifactFuzz, DamagedBlocksNeverCrash) {
  PlanBuilder builder = deviceBuilder({2});
  auto dim = split(0, {0, 3, 8});
  uint32_t in = builder.value({8}, sharding(1, {{0, dim}})), out = builder.value({8}, sharding(1, {{0, dim}}));
  builder.input("in", in);
  builder.kernel("incrementBlocks", {in}, {out}, {{8, dim}});
  setBlocks(builder, 32, {0}, 4, 64);
  builder.output("out", out);
  Bytes good = builder.artifact();
  auto sections = runtime::parseArtifact(good);
  ASSERT_TRUE(sections.ok());
  int loaded = 0, refused = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Bytes plan(sections->plan.begin(), sections->plan.end());
    size_t at = random() % (plan.size() / 4) * 4;
    uint32_t value = random() % 2 ? random() % 16 : random();
    std::memcpy(plan.data() + at, &value, 4);
    auto decoded = runtime::decodePlan(plan, 0);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << decoded.status();
      ++refused;
      continue;
    }
    ++loaded;
    for (const runtime::StepInfo &step : decoded->steps)
      if (const auto *call = std::get_if<runtime::KernelCall>(&step.action); call && call->blocks) {
        std::vector<layout::Interval> ranges;
        for (const runtime::LoopInfo &loop : call->loops)
          ranges.push_back({0, loop.extent});
        int64_t blocks = call->blocks->blockCount(ranges, 1000);
        EXPECT_TRUE(blocks >= 1 && blocks <= 1000) << blocks;
      }
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 100);
}
