//===- Embedding.cpp - A program with MPI of its own ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs an artifact for two ranks, which takes the largest neighbours of a 9 x 7 image of 2 channels, on communicators
// of its own: `mpi-embedding ARTIFACT [funneled]` on 4 processes, which say whether all was as it should be.
//
//===----------------------------------------------------------------------===//

#include "dovetail/dovetail.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <thread>

namespace {

constexpr int channels = 2, height = 9, width = 7, elements = channels * height * width;

bool isPooled(const std::vector<float> &in, const std::vector<float> &out) {
  for (int c = 0; c < channels; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        float most = -1e30f;
        for (int v = std::max(y - 1, 0); v <= std::min(y + 1, height - 1); ++v)
          for (int u = std::max(x - 1, 0); u <= std::min(x + 1, width - 1); ++u)
            most = std::max(most, in[(c * height + v) * width + u]);
        if (out[(c * height + y) * width + x] != most)
          return false;
      }
  return true;
}

/// Whether starting or running ends with an error of this status whose message contains `text`.
template <typename Body> bool fails(dovetail_status status, const char *text, Body body) {
  try {
    body();
  } catch (const dovetail::Error &error) {
    if (error.status() == status && std::strstr(error.what(), text))
      return true;
    std::printf("%d: %s\n", error.status(), error.what());
    return false;
  }
  std::printf("nothing happened instead of: %s\n", text);
  return false;
}

bool runPrograms(const dovetail::Program &program) {
  int rank = 0, half = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm pair = MPI_COMM_NULL;
  // The last process is rank 0 of its pair.
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &pair);
  MPI_Comm_rank(pair, &half);
  bool isWell = half == (rank < 2 ? 1 : 0);

  std::vector<dovetail::Port> inputs = program.inputs(), outputs = program.outputs();
  std::vector<float> in(elements), out(elements);
  auto run = [&](dovetail::Runner &runner, int round) {
    for (int i = 0; i < elements; ++i)
      in[i] = static_cast<float>((i * 37 + round * 11 + rank % 2 * 5) % 101);
    std::vector<DLTensor> none, made{outputs[0].tensor(out.data())};
    runner.run({inputs[0].tensor(in.data())}, half == 0 ? made : none);
    return half != 0 || isPooled(in, out);
  };
  {
    dovetail::Runner runner = dovetail::Runner::overMpi(program, MPI_Comm_c2f(pair));
    dovetail::Runner other = dovetail::Runner::overMpi(program, MPI_Comm_c2f(pair), /*threads=*/2);
    for (int round = 0; round < 3; ++round) {
      isWell = run(runner, round) && isWell;
      isWell = run(other, round) && isWell;
    }
    isWell = fails(DOVETAIL_ERROR_DEVICE, "the program is for 2 ranks, but the communicator has 4 processes",
                   [&] { dovetail::Runner::overMpi(program, MPI_Comm_c2f(MPI_COMM_WORLD)); }) &&
             isWell;
    isWell = run(runner, 7) && isWell;
  }
  // A rank that leaves the others alone ends their run, and no more than that.
  dovetail::Runner runner = dovetail::Runner::overMpi(program, MPI_Comm_c2f(pair));
  if (half == 0)
    isWell = fails(DOVETAIL_ERROR_DEVICE, "rank 1 has ended before the others", [&] { run(runner, 0); }) && isWell;
  else
    dovetail::Runner ended = std::move(runner);
  MPI_Barrier(pair);
  // One that comes too late is not waited for. What was begun with it ends in memory that is still there.
  if (half == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  isWell =
      fails(DOVETAIL_ERROR_DEVICE, "other processes did not answer in time",
            [&] { dovetail::Runner::overMpi(program, MPI_Comm_c2f(pair), /*threads=*/1, /*timeoutSeconds=*/0.5); }) &&
      isWell;
  MPI_Barrier(pair);
  dovetail::Runner again = dovetail::Runner::overMpi(program, MPI_Comm_c2f(pair));
  isWell = run(again, 5) && isWell;
  MPI_Comm_free(&pair);
  return isWell;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  bool isFunneled = argc > 2 && std::strcmp(argv[2], "funneled") == 0;
  dovetail::Program program(argv[1]);
  bool isWell = fails(DOVETAIL_ERROR_DEVICE, "MPI is not initialised", [&] { dovetail::Runner::overMpi(program, 0); });
  int threads = 0;
  MPI_Init_thread(&argc, &argv, isFunneled ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED, &threads);
  if (isFunneled)
    isWell = fails(DOVETAIL_ERROR_DEVICE, "was begun with MPI_THREAD_FUNNELED",
                   [&] { dovetail::Runner::overMpi(program, MPI_Comm_c2f(MPI_COMM_WORLD)); }) &&
             isWell;
  else
    isWell = runPrograms(program) && isWell;
  MPI_Finalize();
  isWell = fails(DOVETAIL_ERROR_DEVICE, "MPI has ended in this process",
                 [&] { dovetail::Runner(program, 1, 60, false, "mpi"); }) &&
           isWell;
  std::printf(isWell ? "as it should be\n" : "not as it should be\n");
  return isWell ? 0 : 1;
}
