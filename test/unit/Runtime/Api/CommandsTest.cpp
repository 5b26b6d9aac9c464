//===- CommandsTest.cpp - Commands on artifacts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../../tools/steps/RunCommand.h"
#include "../Harness/PlanBuilder.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"
#include "dovetail/tools/TensorFile.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::test;
using testing::HasSubstr;
using tools::NamedTensor;

namespace {

struct Result {
  int code;
  std::string output, messages;
};

class Commands : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "/dovetail-commands-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    // A stencil on 3 uneven ranks.
    PlanBuilder builder({3});
    builder.plan.model = "stencil";
    auto rows = split(0, {0, 5, 6, 40}), extended = windows(0, {{0, 6}, {4, 7}, {5, 40}});
    layout::Sharding cut = sharding(2, {{0, rows}}), held = sharding(2, {{0, extended}});
    uint32_t buffer = builder.buffer({40, 2}, held);
    uint32_t in = builder.tensor(buffer, cut, "in"), full = builder.tensor(buffer, held, "extended");
    uint32_t out = builder.value({40, 2}, cut, {}, "out");
    builder.input("x", in);
    builder.exchange(in, full);
    builder.kernel("stencil", {full}, {out}, {{40, rows}, {2, {}}});
    builder.output("y", out);
    std::vector<std::byte> bytes = builder.artifact();
    write("stencil.dvt", std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
    x.name = "x";
    x.shape = {40, 2};
    tools::fillRandom(x, 5, 10);
    ASSERT_TRUE(tools::writeNpy(path("x.npy"), x).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const { return folder + "/" + name; }
  void write(const std::string &name, const std::string &bytes) {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string read(const std::string &name) {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  /// Runs a command; `%` in an argument stands for the folder.
  Result run(std::vector<std::string> arguments) {
    CLI::App app("test", "test-tool");
    Result result{0, "", ""};
    tools::addRunCommand(app, result.code);
    tools::addInspectCommand(app, result.code);
    tools::addBenchCommand(app, result.code);
    tools::addDevicesCommand(app, result.code);
    for (std::string &argument : arguments)
      for (size_t at; (at = argument.find("%")) != std::string::npos;)
        argument.replace(at, 1, folder + "/");
    std::reverse(arguments.begin(), arguments.end()); // As CLI11 wants them.
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError &error) {
      result.code = 2;
      result.messages = error.what();
    }
    result.output = testing::internal::GetCapturedStdout();
    result.messages += testing::internal::GetCapturedStderr();
    return result;
  }

  std::string folder;
  NamedTensor x;
};

} // namespace

TEST_F(Commands, RunReadsAndWritesFiles) {
  Result result = run({"run", "%stencil.dvt", "--input", "x=@%x.npy", "--output", "y=%y.npy", "--output", "%all.npz",
                       "--threads", "2", "--trace", "%trace.json", "--timing"});
  ASSERT_EQ(result.code, 0) << result.messages;
  EXPECT_EQ(result.output, "");
  auto y = tools::readNpy(path("y.npy"));
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ(y->shape, x.shape);
  const float *in = reinterpret_cast<const float *>(x.bytes.data()),
              *out = reinterpret_cast<const float *>(y->bytes.data());
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 2; ++j)
      EXPECT_EQ(out[2 * i + j],
                (i > 0 ? in[2 * (i - 1) + j] : 0) + 2 * in[2 * i + j] + 3 * (i < 39 ? in[2 * (i + 1) + j] : 0));
  auto all = tools::readNpz(path("all.npz"));
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].name, "y");
  EXPECT_EQ((*all)[0].bytes, y->bytes);

  nlohmann::json trace = nlohmann::json::parse(read("trace.json"));
  std::map<std::string, int> steps, begun;
  for (const nlohmann::json &event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      ++steps[event["cat"].get<std::string>()];
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
    // What has the same id is one, whichever rank it belongs to.
    if (event["ph"] == "b")
      EXPECT_EQ(++begun[event["id"].get<std::string>()], 1);
  }
  EXPECT_EQ(begun.size(), 3u);
  // The kernel waits for the exchange, and the end for what others read.
  EXPECT_EQ(steps, (std::map<std::string, int>{{"exchange", 3}, {"kernel", 3}, {"wait", 2 * 3}}));
}

TEST_F(Commands, RunsBeforeTheLastAreOnWrongInputs) {
  PlanBuilder builder({1});
  uint32_t in = builder.value({16}, sharding(1)), out = builder.value({16}, sharding(1));
  builder.input("x", in);
  builder.kernel("recall", {in}, {out}, {{16, {}}});
  builder.output("y", out);
  std::vector<std::byte> bytes = builder.artifact();
  write("recall.dvt", std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  Result first = run({"run", "%recall.dvt", "-i", "x=random:0"});
  EXPECT_THAT(first.output, HasSubstr("min 0  mean 0  max 0"));
  Result last = run({"run", "%recall.dvt", "-i", "x=random:0", "--warmup", "2"});
  EXPECT_THAT(last.output, HasSubstr("all NaN")) << last.messages;
}

TEST(TensorFile, WrongTensorsStayInTheirRange) {
  NamedTensor integers{"i", runtime::ElementType::I32, {3}, {}};
  integers.allocate();
  int32_t values[] = {7, -1, 4};
  std::memcpy(integers.bytes.data(), values, sizeof(values));
  NamedTensor wrong = tools::makeWrong(integers);
  std::memcpy(values, wrong.bytes.data(), sizeof(values));
  EXPECT_THAT(values, testing::ElementsAre(4, -1, 7));
}

TEST_F(Commands, RunSummarizesAndTakesRandomInputs) {
  Result a = run({"run", "%stencil.dvt", "--input", "x=random:5"}), b = run({"run", "%stencil.dvt", "-i", "x=@%x.npy"});
  ASSERT_EQ(a.code, 0) << a.messages;
  EXPECT_THAT(a.output, HasSubstr("float32[40, 2]"));
  EXPECT_EQ(a.output, b.output);
  EXPECT_NE(a.output, run({"run", "%stencil.dvt", "--input", "x=random:6"}).output);
}

TEST(RandomInputs, StayInRangeBehindEachMove) {
  PlanBuilder builder({2});
  layout::Sharding all = sharding(1), cut = sharding(1, {{0, split(0, {0, 3, 40})}});
  auto integers = [&](const layout::Sharding &held) {
    return builder.value({40}, held, {}, "", artifact::ElementType::I64);
  };
  uint32_t numbers = integers(cut), indices = integers(cut), allNumbers = integers(all), allIndices = integers(all);
  uint32_t out = builder.value({40}, all);
  builder.input("numbers", numbers);
  builder.input("indices", indices);
  builder.exchange(numbers, allNumbers);
  builder.addMove(indices, allIndices);
  builder.kernel("increment", {allNumbers, allIndices}, {out}, {{40, {}}}); // It is not run.
  auto &check =
      builder.plan.steps.back()->action.AsKernelStep()->checks.emplace_back(std::make_unique<artifact::IndexCheckT>());
  check->node = "gather";
  check->extent = 3;
  check->tensor = allIndices;
  builder.output("out", out);
  auto program = builder.program();
  auto inputs = tools::readInputs(program->getPlan(), {}, /*randomDefault=*/true);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  auto largest = [](const tools::NamedTensor &tensor) {
    const auto *values = reinterpret_cast<const int64_t *>(tensor.bytes.data());
    return *std::max_element(values, values + 40);
  };
  EXPECT_EQ(largest((*inputs)[0]), 9);
  EXPECT_EQ(largest((*inputs)[1]), 2);
}

TEST_F(Commands, ArchivesNameTheirInputs) {
  ASSERT_TRUE(tools::writeNpz(path("in.npz"), {x}).ok());
  Result whole = run({"run", "%stencil.dvt", "--input", "@%in.npz"});
  EXPECT_EQ(whole.code, 0) << whole.messages;
  EXPECT_EQ(whole.output, run({"run", "%stencil.dvt", "--input", "x=@%in.npz"}).output);
}

TEST_F(Commands, MistakesAreNamed) {
  NamedTensor wide = x, doubles = x;
  wide.shape = {80};
  doubles.type = runtime::ElementType::F64;
  doubles.allocate();
  ASSERT_TRUE(tools::writeNpy(path("wide.npy"), wide).ok());
  ASSERT_TRUE(tools::writeNpy(path("doubles.npy"), doubles).ok());
  write("garbage.npy", "garbage");
  write("short.npy", read("x.npy").substr(0, 200));
  write("broken.dvt", read("stencil.dvt").substr(0, 5000));
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string words;
  };
  const std::string good = "x=@%x.npy";
  std::vector<Case> cases = {
      {{"run", "%none.dvt", "-i", good}, 3, "none.dvt"},
      {{"run", "%broken.dvt", "-i", good}, 7, "broken.dvt"},
      {{"run", "%x.npy", "-i", good}, 7, "not a Dovetail artifact"},
      {{"run", "%stencil.dvt"}, 2, "input 'x' float32[40, 2] is not given"},
      {{"run", "%stencil.dvt", "-i", "z=@%x.npy"}, 2, "no input 'z'"},
      {{"run", "%stencil.dvt", "-i", good, "-i", good}, 2, "'x' is given twice"},
      {{"run", "%stencil.dvt", "-i", "x"}, 2, "--input x"},
      {{"run", "%stencil.dvt", "-i", "x=random:dice"}, 2, "random:dice"},
      {{"run", "%stencil.dvt", "-i", "x=@%none.npy"}, 3, "none.npy"},
      {{"run", "%stencil.dvt", "-i", "x=@%none.npz"}, 3, "none.npz"},
      {{"run", "%stencil.dvt", "-i", "x=@%garbage.npy"}, 3, "garbage.npy"},
      {{"run", "%stencil.dvt", "-i", "@%garbage.npy"}, 3, "garbage.npy"},
      {{"run", "%stencil.dvt", "-i", "x=@%short.npy"}, 3, "short.npy"},
      {{"run", "%stencil.dvt", "-i", "x=@%wide.npy"}, 2, "shape [40, 2]"},
      {{"run", "%stencil.dvt", "-i", "x=@%doubles.npy"}, 2, "float64"},
      {{"run", "%stencil.dvt", "-i", good, "-o", "w=%w.npy"}, 2, "no output 'w'"},
      {{"run", "%stencil.dvt", "-i", good, "-o", "y"}, 2, "--output y"},
      {{"run", "%stencil.dvt", "-i", good, "-o", "y=%no/y.npy"}, 3, "no/y.npy"},
      {{"run", "%stencil.dvt", "-i", good, "-o", "y=%stencil.dvt"}, 2, "must end in .npy"},
      {{"run", "%stencil.dvt", "-i", good, "--trace", "%no/t.json"}, 3, "no/t.json"},
      {{"run", "%stencil.dvt", "-i", good, "--threads", "0"}, 2, "--threads 0"},
      {{"run", "%stencil.dvt", "-i", good, "--threads", "many"}, 2, "many"},
      {{"run", "%stencil.dvt", "-i", good, "--comm", "pigeon"}, 2, "pigeon"},
      {{"run", "%stencil.dvt", "-i", good, "--comm", "nccl"},
       2,
       "transport 'nccl' moves memory of kind 'cuda', but programs for target 'cpu' keep theirs in memory of kind "
       "'host'"},
      {{"run", "%stencil.dvt", "-i", good, "--rank", "0"}, 2, "add --comm nccl"},
      {{"bench", "%stencil.dvt", "--comm", "nccl", "--rank", "3", "--world", "3"}, 2, "--rank 3 --world 3"},
      {{"run", "%stencil.dvt", "--comm", "nccl", "--rank", "1", "--world", "3"}, 2, "add --address HOST:PORT"},
      {{"run", "%stencil.dvt", "--comm", "nccl", "--address", "h:0"}, 2, "--address h:0: the port"},
      {{"run", "%stencil.dvt", "-i", good, "--timeout", "-1"}, 2, "--timeout"},
      {{"run", "%stencil.dvt", "-i", good, "--speed", "9"}, 2, "--speed"},
      {{"run", "%stencil.dvt", "-i", good, "--warmup", "-1"}, 2, "--warmup -1"},
      {{"run"}, 2, "artifact"},
      {{"bench", "%stencil.dvt", "--iterations", "0"}, 2, "--iterations 0"},
      {{"bench", "%none.dvt"}, 3, "none.dvt"},
      {{"inspect", "%none.dvt"}, 3, "none.dvt"},
      {{"inspect", "%broken.dvt"}, 7, "broken.dvt"},
  };
  for (const Case &test : cases) {
    Result result = run(test.arguments);
    std::string line = testing::PrintToString(test.arguments);
    EXPECT_EQ(result.code, test.code) << line << result.messages;
    EXPECT_THAT(result.messages, HasSubstr(test.words)) << line;
    EXPECT_EQ(result.output, "") << line;
  }
}

TEST_F(Commands, InspectShowsCutsAndBytes) {
  Result result = run({"inspect", "%stencil.dvt"});
  ASSERT_EQ(result.code, 0) << result.messages;
  for (const char *words : {"stencil", "a=3 (3 ranks)", "float32[40, 2]", "[a:5+1+34, _]", "halo", "messages",
                            "every send has its receive"})
    EXPECT_THAT(result.output, HasSubstr(words));
  result = run({"inspect", "%stencil.dvt", "--json"});
  nlohmann::json report = nlohmann::json::parse(result.output);
  // Rank 0 needs one row of 8 bytes, rank 1 one from each side, rank 2 one.
  EXPECT_EQ(report["exchanges"][0]["moves"][0]["received_bytes"], (std::vector<int64_t>{8, 16, 8}));
  EXPECT_EQ(report["exchanges"][0]["moves"][0]["lower_bound_bytes"], 32);
  EXPECT_EQ(report["exchanges"][0]["moves"][0]["class"], "halo");
  EXPECT_EQ(report["exchanges"][0]["kind"], "messages");
  // Rank 2 holds 35 rows of its input and 34 of its result.
  EXPECT_EQ(report["ranks"][2]["values_bytes"], 320 + 320);
}

TEST_F(Commands, BenchMeasures) {
  Result result = run({"bench", "%stencil.dvt", "--iterations", "5", "--warmup", "1", "--json"});
  ASSERT_EQ(result.code, 0) << result.messages;
  nlohmann::json report = nlohmann::json::parse(result.output);
  EXPECT_EQ(report["ranks"], 3);
  EXPECT_GT(report["min_ms"].get<double>(), 0);
  EXPECT_LE(report["min_ms"].get<double>(), report["median_ms"].get<double>());
  EXPECT_GT(report["issue_ms"].get<double>(), 0);
  EXPECT_LE(report["issue_ms"].get<double>(), report["max_ms"].get<double>());
}

TEST_F(Commands, DevicesListsTheCpu) {
  Result result = run({"devices", "--json"});
  ASSERT_EQ(result.code, 0) << result.messages;
  nlohmann::json found = nlohmann::json::parse(result.output);
  EXPECT_GE(found["devices"][0]["processors"].get<int>(), 1);
  EXPECT_TRUE(found["communicators"].contains("local"));
}

TEST(TensorFile, ForeignArrays) {
  // Written by NumPy 2: np.asfortranarray(np.arange(6, dtype='<i2').reshape(2, 3)), and np.float32(7).
  std::string path = testing::TempDir() + "/dovetail-foreign-" + std::to_string(::getpid()) + ".npy";
  auto write = [&](const std::string &header, const std::string &elements) {
    std::string text = header;
    text.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
    text += '\n';
    std::ofstream(path, std::ios::binary)
        << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(text.size()) << '\0' << text << elements;
  };
  write("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", std::string("\0\0\3\0\1\0\4\0\2\0\5\0", 12));
  auto tensor = tools::readNpy(path);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  int16_t values[6];
  std::memcpy(values, tensor->bytes.data(), 12);
  EXPECT_THAT(values, testing::ElementsAre(0, 1, 2, 3, 4, 5));

  write("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", std::string("\0\0\xe0\x40", 4));
  tensor = tools::readNpy(path);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_TRUE(tensor->shape.empty());

  for (const char *header : {"", "{}", "{'descr': '<f4'}", "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                             "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } + 1"}) {
    write(header, "abcd");
    EXPECT_EQ(tools::readNpy(path).status().code(), absl::StatusCode::kOutOfRange) << header;
  }
  std::filesystem::remove(path);
}
