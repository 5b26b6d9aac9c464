//===- CallForm.cpp - What libraries take of accesses -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the forms of library calls are found in accesses.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/CallForm.h"

#include "dovetail/Calls/AttentionForm.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::calls;
using namespace dovetail::layout;

/// Whether `index` names none but the first `count` loops.
static bool hasLoops(const IndexExpr &index, size_t count) {
  return std::all_of(index.getTerms().begin(), index.getTerms().end(), [&](const IndexExpr::Term &term) {
    bool isKnown = term.kind != IndexExpr::Kind::Loop || static_cast<size_t>(term.number) < count;
    return isKnown && (!term.hasOperand() || hasLoops(term.getOperand(), count));
  });
}

/// Whether a call may have loops of these extents, and read an operand there.
static bool isPossible(std::span<const AccessDim> access, std::span<const int64_t> loops) {
  return std::all_of(loops.begin(), loops.end(), [](int64_t extent) { return extent >= 0; }) &&
         std::all_of(access.begin(), access.end(),
                     [&](const AccessDim &dim) { return hasLoops(dim.index, loops.size()); });
}

static bool isLoop(const AccessDim &access, size_t loop) {
  return access == AccessDim(IndexExpr::loop(static_cast<int>(loop)));
}

/// The windows of dimensions 2, 3, ... of `input`, whose taps are the last loops.
static std::optional<std::vector<Window>> findWindows(std::span<const AccessDim> input,
                                                      std::span<const int64_t> loops) {
  std::vector<Window> windows;
  size_t firstTap = loops.size() - (input.size() - 2);
  for (size_t i = 0; i + 2 < input.size(); ++i) {
    std::optional<Window> window =
        Window::find(input[2 + i], static_cast<int>(2 + i), static_cast<int>(firstTap + i), loops[firstTap + i]);
    if (!window || (i > 0 && window->isTransposed != windows[0].isTransposed))
      return std::nullopt;
    windows.push_back(*window);
  }
  return windows;
}

IndexExpr dovetail::calls::channelOfGroup(int64_t groups, const IndexExpr &outer, int64_t outerPerGroup,
                                          const IndexExpr &channel, int64_t perGroup) {
  return groups == 1 ? channel : outer.floorDiv(outerPerGroup) * perGroup + channel;
}

IndexExpr dovetail::calls::channelInGroup(int64_t groups, const IndexExpr &outer, int64_t outerPerGroup) {
  return groups == 1 ? outer : outer.mod(outerPerGroup);
}

std::optional<ConvolutionForm> ConvolutionForm::find(std::span<const AccessDim> input,
                                                     std::span<const AccessDim> weights,
                                                     std::span<const int64_t> loops) {
  size_t rank = input.size();
  if (rank < 3 || weights.size() != rank || loops.size() != rank + 1 + (rank - 2) || !isLoop(input[0], 0) ||
      !isPossible(input, loops) || !isPossible(weights, loops))
    return std::nullopt;
  for (size_t i = 2; i < rank; ++i)
    if (!isLoop(weights[i], rank - 1 + i))
      return std::nullopt;
  std::optional<std::vector<Window>> windows = findWindows(input, loops);
  if (!windows)
    return std::nullopt;

  ConvolutionForm form;
  form.isTransposed = windows->front().isTransposed;
  form.windows = *std::move(windows);
  // As many groups as the channels of all of them have room for.
  IndexExpr outer = IndexExpr::loop(1), channel = IndexExpr::loop(static_cast<int>(rank));
  int64_t perGroup = loops[rank];
  int64_t outerPerGroup = loops[1];
  if (!(input[1] == AccessDim(channel))) {
    outerPerGroup = countSharing(input.subspan(1, 1), 1, loops[1]);
    if (perGroup < 1 || outerPerGroup < 1 || loops[1] % outerPerGroup != 0)
      return std::nullopt;
    form.groups = loops[1] / outerPerGroup;
  }
  AccessDim read = channelOfGroup(form.groups, outer, outerPerGroup, channel, perGroup);
  bool fits = input[1] == read;
  if (form.isTransposed)
    fits = fits && weights[0] == read && weights[1] == AccessDim(channelInGroup(form.groups, outer, outerPerGroup));
  else
    fits = fits && weights[0] == AccessDim(outer) && weights[1] == AccessDim(channel);
  return fits ? std::optional(std::move(form)) : std::nullopt;
}

std::optional<PoolForm> PoolForm::find(std::span<const AccessDim> input, std::span<const int64_t> loops) {
  size_t rank = input.size();
  if (rank < 3 || loops.size() != rank + (rank - 2) || !isLoop(input[0], 0) || !isLoop(input[1], 1) ||
      !isPossible(input, loops))
    return std::nullopt;
  std::optional<std::vector<Window>> windows = findWindows(input, loops);
  if (!windows || windows->front().isTransposed)
    return std::nullopt;
  return PoolForm{*std::move(windows)};
}

/// Whether the last two of `dims` are these loops, or in the other order; nothing if neither.
static std::optional<bool> areSwapped(std::span<const AccessDim> dims, size_t row, size_t column) {
  const AccessDim &first = dims[dims.size() - 2], &last = dims.back();
  if (isLoop(first, row) && isLoop(last, column))
    return false;
  if (isLoop(first, column) && isLoop(last, row))
    return true;
  return std::nullopt;
}

std::optional<ProductForm> ProductForm::find(std::span<const AccessDim> a, std::span<const AccessDim> b,
                                             std::span<const int64_t> loops) {
  if (loops.size() < 3 || a.size() < 2 || b.size() < 2 || std::max(a.size(), b.size()) != loops.size() - 1 ||
      !isPossible(a, loops) || !isPossible(b, loops))
    return std::nullopt;
  size_t rank = loops.size() - 1;
  // A loop of the batch is that of a dimension of one of them at least.
  std::vector<bool> isFound(rank - 2);
  for (std::span<const AccessDim> factor : {a, b})
    for (size_t dim = 0; dim + 2 < factor.size(); ++dim) {
      size_t loop = rank - factor.size() + dim;
      if (isLoop(factor[dim], loop))
        isFound[loop] = true;
      else if (!(factor[dim] == AccessDim(0)))
        return std::nullopt;
    }
  for (size_t loop = 0; loop + 2 < rank; ++loop)
    if (!isFound[loop] && loops[loop] != 1)
      return std::nullopt;
  std::optional<bool> swapsA = areSwapped(a, rank - 2, rank), swapsB = areSwapped(b, rank, rank - 1);
  if (!swapsA || !swapsB)
    return std::nullopt;
  return ProductForm{*swapsA, *swapsB};
}

std::optional<TransformForm> TransformForm::find(std::span<const AccessDim> input, std::span<const int64_t> loops) {
  size_t rank = input.size();
  if (rank < 2 || loops.size() != rank + 2 || !isPossible(input, loops) || !isLoop(input.back(), rank + 1))
    return std::nullopt;
  TransformForm form;
  form.axis = rank;
  for (size_t dim = 0; dim + 1 < rank; ++dim) {
    if (isLoop(input[dim], rank) && form.axis == rank)
      form.axis = dim;
    else if (!isLoop(input[dim], dim))
      return std::nullopt;
  }
  int64_t partsRead = loops[rank + 1], partsWritten = loops[rank - 1];
  if (form.axis == rank || std::min(partsRead, partsWritten) < 1 || std::max(partsRead, partsWritten) != 2)
    return std::nullopt;
  form.readsReal = partsRead == 1;
  form.writesReal = partsWritten == 1;
  int64_t read = loops[rank], written = loops[form.axis];
  form.length = form.writesReal ? written : read;
  bool fits = form.readsReal ? written == read / 2 + 1 : form.writesReal ? read == written / 2 + 1 : read == written;
  return fits && form.length > 0 ? std::optional(form) : std::nullopt;
}

Box TransformForm::readBox(const Box &result) const {
  Box box = result;
  box[static_cast<int>(axis)] = {0, writesReal ? length / 2 + 1 : length};
  box[box.rank() - 1] = {0, readsReal ? 1 : 2};
  return box;
}

bool dovetail::calls::isAttention(std::span<const AccessDims> accesses, std::span<const int64_t> loops) {
  return std::all_of(accesses.begin(), accesses.end(), [&](AccessDims access) { return isPossible(access, loops); }) &&
         AttentionForm::find(accesses, loops).has_value();
}

bool dovetail::calls::fits(std::span<const AccessDim> access, std::span<const int64_t> shape,
                           std::span<const int64_t> loops, size_t firstWindow) {
  if (access.size() != shape.size())
    return false;
  Box all = Box::ofShape(loops);
  for (size_t dim = 0; dim < std::min(firstWindow, shape.size()); ++dim)
    if (!(access[dim].need(all) == Interval{0, shape[dim]}))
      return false;
  return true;
}
