//===- ConvolutionAlgorithms.cpp - Ways to compute convolutions -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the algorithms for convolutions.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/ConvolutionAlgorithms.h"

#include "dovetail/Calls/Gathered.h"
#include "dovetail/Calls/Winograd.h"

#include <algorithm>

using namespace dovetail::calls;

static int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t countWinogradTiles(std::span<const int64_t> loops) {
  return loops[0] * divideCeil(loops[2], winogradTile) * divideCeil(loops[3], winogradTile);
}

static AlgorithmWork getWinogradWork(std::span<const int64_t> loops) {
  // Operations that take a channel of a tile from its inputs to factors, or from products to results. There are 144 or
  // 120 additions and multiplications. Loads and stores, some of them from further away, are as many again.
  constexpr double transform = 400;
  auto pad = [](int64_t channels) { return double(divideCeil(channels, winogradVector) * winogradVector); };
  double tiles = double(countWinogradTiles(loops)), columns = double(loops[1]), inputs = double(loops[4]);
  AlgorithmWork work;
  work.batch = double(winogradTaps);
  work.rows = tiles;
  work.depth = inputs;
  work.products = double(winogradTaps) * tiles * inputs * columns;
  work.operations = transform * tiles * (pad(loops[4]) + pad(loops[1]));
  work.readBytes = double(winogradTaps - 9) * 4 * inputs * columns;
  return work;
}

static AlgorithmMemory getWinogradMemory(std::span<const int64_t> loops) {
  int64_t inputs = std::max<int64_t>(loops[4], 1), outputs = loops[1];
  return {winogradWeightBytes(inputs, outputs), winogradScratchBytes(inputs, outputs, countWinogradTiles(loops))};
}

static bool isGatheredForm(const ConvolutionForm &form) { return gatheredPhases(form) <= gatheredMostPhases; }

static_assert(gatheredMostPhases == 512, "as the condition says");
static const AlgorithmEntry algorithms[] = {
    {ConvolutionAlgorithm::Winograd, "winograd", "of 3 x 3 with stride 1 and one group", isWinogradForm,
     getWinogradWork, getWinogradMemory, /*error=*/1e-5},
    {ConvolutionAlgorithm::Gathered, "gathered", "with at most 512 kinds of windows", isGatheredForm}};

std::span<const AlgorithmEntry> dovetail::calls::getAlgorithms() { return algorithms; }

const AlgorithmEntry *dovetail::calls::findAlgorithm(ConvolutionAlgorithm algorithm) {
  auto entry = std::find_if(std::begin(algorithms), std::end(algorithms),
                            [&](const AlgorithmEntry &each) { return each.algorithm == algorithm; });
  return entry == std::end(algorithms) ? nullptr : entry;
}

bool dovetail::calls::mayRound(const ConvolutionForm &form) {
  return std::any_of(std::begin(algorithms), std::end(algorithms), [&](const AlgorithmEntry &each) {
    return each.isChoice() && each.error > 0 && each.applies(form);
  });
}
