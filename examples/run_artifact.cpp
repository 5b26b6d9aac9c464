//===- run_artifact.cpp - Runs a compiled program -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads an artifact, runs it on ramps of numbers and prints the beginning of each output.
//
//===----------------------------------------------------------------------===//

#include "dovetail/dovetail.hpp"

#include <cstdio>
#include <vector>

/// Numbers from 0 to 1 for floats; everything else stays zero.
static std::vector<char> makeInput(const dovetail::Port &port) {
  std::vector<char> bytes(port.bytes());
  if (port.type.code == kDLFloat && port.type.bits == 32) {
    float *data = reinterpret_cast<float *>(bytes.data());
    size_t count = bytes.size() / sizeof(float);
    for (size_t i = 0; i < count; ++i)
      data[i] = static_cast<float>(i) / static_cast<float>(count);
  }
  return bytes;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.dvt\n", argv[0]);
    return 2;
  }
  try {
    dovetail::Program program(argv[1]);
    std::vector<dovetail::Port> inputs = program.inputs(), outputs = program.outputs();
    std::vector<std::vector<char>> memory;
    std::vector<DLTensor> inputTensors, outputTensors;
    for (dovetail::Port &port : inputs) {
      memory.push_back(makeInput(port));
      inputTensors.push_back(port.tensor(memory.back().data()));
    }
    for (dovetail::Port &port : outputs) {
      memory.emplace_back(port.bytes());
      outputTensors.push_back(port.tensor(memory.back().data()));
    }

    // Ranks start once; after that, runs are cheap.
    dovetail::Runner runner(program, /*threads=*/program.numRanks());
    runner.run(inputTensors, outputTensors);

    std::printf("%d ranks\n", program.numRanks());
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::printf("%s:", outputs[i].name.c_str());
      const float *data = reinterpret_cast<const float *>(memory[inputs.size() + i].data());
      if (outputs[i].type.code == kDLFloat && outputs[i].type.bits == 32)
        for (size_t k = 0; k < outputs[i].bytes() / sizeof(float) && k < 8; ++k)
          std::printf(" %g", data[k]);
      std::printf("\n");
    }
  } catch (const dovetail::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.status();
  }
  return 0;
}
