//===- CApiTest.cpp - C and C++ interface -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"

#include "dovetail/dovetail.hpp"

#include <atomic>
#include <cstring>
#include <thread>

using namespace dovetail::test;
using testing::HasSubstr;

namespace {

/// How a plan says what its input is in the next run: not at all, as its output, or as a value that is cut in another
/// way.
enum class Fed { Not, Output, Otherwise };

/// y[i, j] = x[i, j] + 1000 i + j, on two ranks.
std::vector<std::byte> makeArtifact(Fed fed = Fed::Not) {
  PlanBuilder builder({2});
  auto dim = split(0, {0, 2, 6});
  auto cut = sharding(2, {{1, dim}});
  uint32_t in = builder.value({2, 6}, cut);
  uint32_t scale = builder.constantValue({6}, sharding(1), {1, 1, 1, 1, 1, 1}), out = builder.value({2, 6}, cut);
  builder.input("x", in);
  builder.kernel("scaleAndPlace", {in, scale}, {out}, {{2, {}}, {6, dim}});
  builder.output("y", out);
  if (fed != Fed::Not) {
    auto &input = *builder.plan.inputs[0];
    input.fed_by = 0;
    input.next = out;
    if (fed == Fed::Otherwise) {
      input.next = builder.value({2, 6}, sharding(2));
      builder.exchange(out, input.next);
    }
  }
  return builder.artifact();
}

} // namespace

TEST(CApi, RunsFromStridedTensors) {
  std::vector<std::byte> bytes = makeArtifact();
  dovetail::Program program(bytes.data(), bytes.size());
  EXPECT_EQ(program.numRanks(), 2);
  EXPECT_EQ(program.target(), "cpu");
  using Axes = std::vector<std::pair<std::string, int>>;
  EXPECT_EQ(program.mesh(), (Axes{{"a", 2}}));
  std::vector<dovetail::Port> inputs = program.inputs(), outputs = program.outputs();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].shape, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(inputs[0].bytes(), 48u);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].name, "y");

  dovetail::Runner runner(program, 2);
  // The input lies transposed, behind an offset.
  std::vector<float> in(13), out(12);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 6; ++j)
      in[1 + j * 2 + i] = static_cast<float>(10 * i + j);
  DLTensor x = inputs[0].tensor(in.data()), y = outputs[0].tensor(out.data());
  int64_t strides[] = {1, 2};
  x.strides = strides;
  x.byte_offset = 4;
  for (int run = 0; run < 3; ++run) {
    runner.run({x}, {y});
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 6; ++j)
        EXPECT_EQ(out[i * 6 + j], static_cast<float>(10 * i + j) + static_cast<float>(1000 * i + j));
  }
}

TEST(CApi, RunsWithWhatRanksHold) {
  std::vector<std::byte> bytes = makeArtifact();
  dovetail::Program program(bytes.data(), bytes.size());
  std::vector<dovetail::Port> inputs = program.inputs(), outputs = program.outputs();
  dovetail::Runner runner(program);
  EXPECT_EQ(runner.ranks(), (std::pair<int, int>{0, 2}));
  std::vector<DLTensor> in, out;
  std::vector<dovetail::Part> parts;
  std::vector<std::vector<float>> given, got;
  for (int rank : {0, 1}) {
    parts.push_back(program.inputPart(0, rank));
    EXPECT_EQ(parts[rank].offsets, (std::vector<int64_t>{0, rank == 0 ? 0 : 2}));
    EXPECT_EQ(parts[rank].extents, (std::vector<int64_t>{2, rank == 0 ? 2 : 4}));
    EXPECT_EQ(program.outputPart(0, rank).extents, parts[rank].extents);
    given.emplace_back(2 * parts[rank].extents[1], 10.0f * rank);
    got.emplace_back(given[rank].size());
  }
  // What the second rank holds lies transposed.
  int64_t strides[] = {1, 2};
  for (int rank : {0, 1}) {
    for (auto [list, data, port] : {std::tuple(&in, &given, &inputs[0]), std::tuple(&out, &got, &outputs[0])}) {
      DLTensor tensor = port->tensor((*data)[rank].data());
      tensor.shape = parts[rank].extents.data();
      list->push_back(tensor);
    }
    for (int64_t j = 0; j < parts[rank].extents[1]; ++j)
      for (int64_t i : {0, 1})
        given[rank][rank == 0 ? i * 2 + j : i + 2 * j] = static_cast<float>(7 * i + j + parts[rank].offsets[1]);
  }
  in[1].strides = strides;
  runner.runLocal(in, out);
  for (int rank : {0, 1})
    for (int64_t i : {0, 1})
      for (int64_t j = 0; j < parts[rank].extents[1]; ++j) {
        int64_t column = j + parts[rank].offsets[1];
        EXPECT_EQ(got[rank][i * parts[rank].extents[1] + j], static_cast<float>(7 * i + column + 1000 * i + column));
      }

  auto fails = [&](std::vector<DLTensor> in, const char *words) {
    EXPECT_EQ(dovetail_runner_run_local(nullptr, in.data(), in.size(), out.data(), out.size()), DOVETAIL_ERROR_USAGE);
    try {
      runner.runLocal(in, out);
      ADD_FAILURE();
    } catch (const dovetail::Error &error) {
      EXPECT_EQ(error.status(), DOVETAIL_ERROR_USAGE);
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  fails({in[0]}, "on each of 2 ranks");
  fails({in[1], in[0]}, "the part of rank 0 of input 'x' has shape [2, 2]");
  EXPECT_THROW(program.inputPart(1, 0), dovetail::Error);
  EXPECT_THROW(program.inputPart(0, 2), dovetail::Error);
  EXPECT_THROW(program.outputPart(0, -1), dovetail::Error);
  // Neither has ended the runner.
  runner.runLocal(in, out);
}

TEST(CApi, ThreadsShareARunner) {
  std::vector<std::byte> bytes = makeArtifact();
  dovetail::Program program(bytes.data(), bytes.size());
  dovetail::Runner runner(program);
  std::atomic<int> numWrong = 0;
  auto work = [&](int number) {
    std::vector<dovetail::Port> inputs = program.inputs(), outputs = program.outputs();
    std::vector<float> in(12, static_cast<float>(number)), out(12);
    for (int run = 0; run < 200; ++run) {
      runner.run({inputs[0].tensor(in.data())}, {outputs[0].tensor(out.data())});
      for (int i = 0; i < 12; ++i)
        numWrong += out[i] != static_cast<float>(number + 1000 * (i / 6) + i % 6);
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back(work, number);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(numWrong, 0);
}

TEST(CApi, StepsRunOnTheirOutputs) {
  std::vector<std::byte> bytes = makeArtifact(Fed::Output);
  dovetail::Program program(bytes.data(), bytes.size());
  std::vector<dovetail::Port> inputs = program.inputs(), outputs = program.outputs();
  int64_t output = -1;
  ASSERT_EQ(dovetail_program_feedback(program.get(), 0, &output), DOVETAIL_OK);
  EXPECT_EQ(output, 0);
  EXPECT_EQ(dovetail_program_feedback(program.get(), 1, &output), DOVETAIL_ERROR_USAGE);
  dovetail::Runner runner(program, 2);
  std::vector<float> in(12, 5), out(12);
  for (int64_t steps : {1, 4, 2}) {
    runner.run({inputs[0].tensor(in.data())}, {outputs[0].tensor(out.data())}, steps);
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(out[i], static_cast<float>(5 + steps * (1000 * (i / 6) + i % 6)));
  }
  EXPECT_THROW(runner.run({inputs[0].tensor(in.data())}, {outputs[0].tensor(out.data())}, 0), dovetail::Error);

  bytes = makeArtifact();
  dovetail::Program plain(bytes.data(), bytes.size());
  ASSERT_EQ(dovetail_program_feedback(plain.get(), 0, &output), DOVETAIL_OK);
  EXPECT_EQ(output, -1);
  try {
    dovetail::Runner(plain).run({inputs[0].tensor(in.data())}, {outputs[0].tensor(out.data())}, 2);
    FAIL();
  } catch (const dovetail::Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("all of 2 steps would be the same, as no output is fed back"));
  }
}

TEST(CApi, FeedbackIsCutAsTheInputIs) {
  std::vector<std::byte> bytes = makeArtifact(Fed::Otherwise);
  dovetail_program *program = nullptr;
  EXPECT_EQ(dovetail_program_load_bytes(bytes.data(), bytes.size(), &program), DOVETAIL_ERROR_ARTIFACT);
  EXPECT_THAT(dovetail_last_error(),
              HasSubstr("ranks do not hold the tensor that feeds input 'x' as they hold the input"));
}

TEST(CApi, ErrorsHaveCodesAndMessages) {
  dovetail_program *program = nullptr;
  EXPECT_EQ(dovetail_program_load("/no/such.dvt", &program), DOVETAIL_ERROR_FILE);
  EXPECT_THAT(dovetail_last_error(), HasSubstr("/no/such.dvt"));
  EXPECT_EQ(dovetail_program_load(nullptr, &program), DOVETAIL_ERROR_USAGE);
  EXPECT_EQ(dovetail_program_load_bytes("garbage", 7, &program), DOVETAIL_ERROR_ARTIFACT);
  EXPECT_EQ(program, nullptr);

  std::vector<std::byte> bytes = makeArtifact();
  ASSERT_EQ(dovetail_program_load_bytes(bytes.data(), bytes.size(), &program), DOVETAIL_OK);
  EXPECT_STREQ(dovetail_last_error(), "");
  const void *copy = nullptr;
  size_t size = 0;
  EXPECT_EQ(dovetail_program_bytes(program, nullptr, &size), DOVETAIL_ERROR_USAGE);
  ASSERT_EQ(dovetail_program_bytes(program, &copy, &size), DOVETAIL_OK);
  ASSERT_EQ(size, bytes.size());
  EXPECT_EQ(std::memcmp(copy, bytes.data(), size), 0);
  dovetail_port port = {};
  port.struct_size = sizeof(port);
  EXPECT_EQ(dovetail_program_input(program, 1, &port), DOVETAIL_ERROR_USAGE);
  dovetail_runner_options options = {};
  options.struct_size = sizeof(options);
  options.threads = -1;
  dovetail_runner *runner = nullptr;
  EXPECT_EQ(dovetail_runner_create(program, &options, &runner), DOVETAIL_ERROR_USAGE);
  ASSERT_EQ(dovetail_runner_create(program, nullptr, &runner), DOVETAIL_OK);
  dovetail_program_free(program); // The runner keeps what it needs.

  float data[12] = {};
  int64_t shape[] = {2, 6};
  DLTensor good = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  auto expect = [&](DLTensor input, const char *words) {
    EXPECT_EQ(dovetail_runner_run(runner, &input, 1, &good, 1), DOVETAIL_ERROR_USAGE);
    EXPECT_THAT(dovetail_last_error(), HasSubstr(words));
  };
  DLTensor gpu = good, doubles = good, flat = good, empty = good;
  gpu.device.device_type = kDLCUDA;
  expect(gpu, "'x' was given a tensor that is not on the CPU");
  doubles.dtype.bits = 64;
  expect(doubles, "'x' has element type float32");
  flat.ndim = 1;
  expect(flat, "'x' has shape [2, 6]");
  empty.data = nullptr;
  expect(empty, "without data");
  EXPECT_EQ(dovetail_runner_run(runner, &good, 2, &good, 1), DOVETAIL_ERROR_USAGE);
  EXPECT_EQ(dovetail_runner_run(runner, &good, 1, &good, 1), DOVETAIL_OK) << dovetail_last_error();
  dovetail_runner_free(runner);
}

namespace {

/// Options as a caller of a newer version has them.
struct NewerOptions {
  dovetail_runner_options known;
  int64_t added[2];
};

/// The runner that a program starts with options of any size. Leaves its message to dovetail_last_error.
dovetail_status createRunner(const dovetail_program *program, const void *options) {
  dovetail_runner *runner = nullptr;
  dovetail_status status =
      dovetail_runner_create(program, static_cast<const dovetail_runner_options *>(options), &runner);
  EXPECT_EQ(runner != nullptr, status == DOVETAIL_OK);
  std::string message = dovetail_last_error();
  dovetail_runner_free(runner);
  return status;
}

} // namespace

TEST(CApi, OptionsOfOtherVersionsAreRead) {
  std::vector<std::byte> bytes = makeArtifact();
  dovetail::Program program(bytes.data(), bytes.size());
  // Older callers end before a field: what lies there is not theirs, and the field has its default.
  dovetail_runner_options older = {};
  older.communicator = "no such transport";
  older.struct_size = sizeof(older);
  EXPECT_EQ(createRunner(program.get(), &older), DOVETAIL_ERROR_USAGE);
  EXPECT_THAT(dovetail_last_error(), HasSubstr("no such transport"));
  for (size_t size = sizeof(size_t); size <= offsetof(dovetail_runner_options, communicator); size += sizeof(size_t)) {
    older.struct_size = size;
    EXPECT_EQ(createRunner(program.get(), &older), DOVETAIL_OK) << size << " bytes: " << dovetail_last_error();
  }
  older.struct_size = offsetof(dovetail_runner_options, communicator) + sizeof(char *);
  EXPECT_EQ(createRunner(program.get(), &older), DOVETAIL_ERROR_USAGE);
  // Fields that an older caller has count.
  older.threads = -1;
  older.struct_size = offsetof(dovetail_runner_options, timeout_seconds);
  EXPECT_EQ(createRunner(program.get(), &older), DOVETAIL_ERROR_USAGE);
  EXPECT_THAT(dovetail_last_error(), HasSubstr("at least 1 thread"));

  NewerOptions newer = {};
  newer.known.struct_size = sizeof(newer);
  EXPECT_EQ(createRunner(program.get(), &newer), DOVETAIL_OK) << dovetail_last_error();
  newer.added[1] = 1;
  EXPECT_EQ(createRunner(program.get(), &newer), DOVETAIL_ERROR_USAGE);
  EXPECT_THAT(dovetail_last_error(), HasSubstr("sets fields that Dovetail " + std::string(dovetail_version())));
  // Behind the end that it states nothing is read.
  newer.known.struct_size = offsetof(NewerOptions, added) + sizeof(int64_t);
  EXPECT_EQ(createRunner(program.get(), &newer), DOVETAIL_OK) << dovetail_last_error();
}

TEST(CApi, StructsWithoutTheirSizeAreRefused) {
  std::vector<std::byte> bytes = makeArtifact();
  dovetail::Program program(bytes.data(), bytes.size());
  for (auto [size, words] : {std::pair(size_t(0), "is 0; set it to sizeof(dovetail_runner_options)"),
                             {sizeof(dovetail_runner_options) - 1, "which no version of the struct has"},
                             {size_t(4), "which no version of the struct has"},
                             {~size_t(7), "which no version of the struct has"}}) {
    dovetail_runner_options options = {};
    options.struct_size = size;
    EXPECT_EQ(createRunner(program.get(), &options), DOVETAIL_ERROR_USAGE) << size;
    EXPECT_THAT(dovetail_last_error(), HasSubstr(words));
  }
  dovetail_port port = {};
  EXPECT_EQ(dovetail_program_input(program.get(), 0, &port), DOVETAIL_ERROR_USAGE);
  EXPECT_THAT(dovetail_last_error(), HasSubstr("struct_size of dovetail_port is 0"));
  EXPECT_EQ(port.name, nullptr);
}

TEST(CApi, PortsOfOtherVersionsAreWritten) {
  std::vector<std::byte> bytes = makeArtifact();
  dovetail::Program program(bytes.data(), bytes.size());
  dovetail_port port = {};
  port.struct_size = offsetof(dovetail_port, type_name);
  ASSERT_EQ(dovetail_program_input(program.get(), 0, &port), DOVETAIL_OK) << dovetail_last_error();
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.ndim, 2);
  EXPECT_EQ(port.struct_size, offsetof(dovetail_port, type_name));
  EXPECT_EQ(port.type_name, nullptr);

  struct {
    dovetail_port known;
    int64_t added[2];
  } newer = {{}, {3, 4}};
  newer.known.struct_size = offsetof(decltype(newer), added) + sizeof(int64_t);
  ASSERT_EQ(dovetail_program_input(program.get(), 0, &newer.known), DOVETAIL_OK) << dovetail_last_error();
  EXPECT_STREQ(newer.known.type_name, "float32");
  EXPECT_EQ(newer.added[0], 0);
  EXPECT_EQ(newer.added[1], 4);
}

TEST(CApi, CppErrorsAreExceptions) {
  try {
    dovetail::Program program("/no/such.dvt");
    FAIL() << "no exception";
  } catch (const dovetail::Error &error) {
    EXPECT_EQ(error.status(), DOVETAIL_ERROR_FILE);
  }
}
