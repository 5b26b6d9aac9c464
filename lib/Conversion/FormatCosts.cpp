//===- FormatCosts.cpp - What memory formats cost -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormatCosts.h"

#include <cstdlib>

using namespace mlir;
using namespace dovetail;
using plan::FormatAttr;

/// How many times as long it takes to read with gaps as what follows each other. Kernels of one thread took 4 to 20
/// times as long for transposed matrices of 128 x 512.
static constexpr double kGaps = 4;

static int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

FormatAttr dovetail::getPreferredFormat(SplitOpInterface op, int64_t rank, const Libraries &libraries) {
  MLIRContext *context = op.getContext();
  LibraryCall call = libraries.findCall(op);
  FormatPreference preference = call ? call.library->getFormatPreference(call.shape) : op.getFormatPreference();
  if (preference == FormatPreference::ChannelsLast && rank >= 3)
    return FormatAttr::getChannelsLast(context, rank);
  if (preference == FormatPreference::RowMajor)
    return FormatAttr::getRowMajor(context, rank);
  return {};
}

bool dovetail::isAlignedWithResult(DefinitionOpInterface op, unsigned number) {
  OpRelation relation = op.getRelation();
  ArrayRef<DimRelation> dims = relation.operands[number];
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  if (static_cast<int64_t>(dims.size()) != rank)
    return false;
  for (auto [dim, entry] : llvm::enumerate(dims))
    if (entry.loop >= 0 && entry.loop < rank && entry.loop != static_cast<int>(dim))
      return false;
  return true;
}

/// The loop over the dimension of a result that is innermost in memory, of those that are longer than 1; nothing if
/// none is.
static std::optional<unsigned> getInnermostLoop(RankedTensorType result, FormatAttr format) {
  for (int64_t dim : llvm::reverse(format.getOrder()))
    if (result.getDimSize(dim) > 1)
      return dim;
  return std::nullopt;
}

/// The elements in memory from what the first iteration of `loop` reads to what the next one does, wherever data or the
/// operation say that this is along other dimensions; nothing if the step depends on them, or not each iteration reads
/// an element.
static std::optional<int64_t> getStep(const Definition &definition, const Access &access, unsigned loop,
                                      RankedTensorType type, FormatAttr format) {
  std::vector<int64_t> strides = format.toLayout().strides(type.getShape());
  SmallVector<int64_t> first(definition.loops.size(), 0), next = first;
  next[loop] = 1;
  int64_t step = 0;
  for (auto [number, dim] : llvm::enumerate(access.dims)) {
    if (dim.divisor != 1)
      return std::nullopt;
    if (!dim.index.dependsOn(static_cast<int>(loop)))
      continue;
    if (dim.index.hasUnknown())
      return std::nullopt;
    step += (dim.index.evaluate(next) - dim.index.evaluate(first)) * strides[number];
  }
  return std::abs(step);
}

/// Whether a kernel that writes its result in the order of memory finds elements of a read side by side.
static bool hasGaps(const Definition &definition, const Access &access, RankedTensorType type, FormatAttr format,
                    RankedTensorType resultType, FormatAttr result) {
  std::optional<unsigned> innermost = getInnermostLoop(resultType, result);
  if (!innermost)
    return false;
  std::optional<int64_t> step = getStep(definition, access, *innermost, type, format);
  if (!step || *step <= 1)
    return false;
  // Loops inside of those over the result, and those that the operation goes through itself, may do. Nothing goes
  // through a lookup.
  for (unsigned loop = 0; loop < definition.loops.size(); ++loop)
    if (!definition.loops[loop].isLookup() && (loop >= definition.resultRank || definition.isLine(loop)) &&
        definition.loops[loop].extent > 1 && getStep(definition, access, loop, type, format) == 1)
      return false;
  return true;
}

bool dovetail::readsWithGaps(DefinitionOpInterface op, unsigned number, FormatAttr format, FormatAttr result) {
  Definition definition = op.getDefinition();
  auto type = cast<RankedTensorType>(op->getOperand(number).getType());
  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  return llvm::any_of(definition.reads, [&](const Access &access) {
    return access.operand == number && hasGaps(definition, access, type, format, resultType, result);
  });
}

double dovetail::getReadCost(SplitOpInterface op, unsigned number, FormatAttr format, FormatAttr result,
                             const Libraries &libraries) {
  Value operand = op->getOperand(number);
  double bytes = getBytes(operand);
  if (LibraryCall call = libraries.findCall(op))
    return !readsOperand(call.shape.form, number) || call.library->readsFormat(call.shape, number, format, result)
               ? 0
               : (1 + kGaps) * bytes;
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  FormatAttr preferred = getPreferredFormat(op, rank, libraries);
  if (preferred && preferred != format && isAlignedWithResult(op, number))
    return kGaps * bytes;
  double cost = 0;
  // What could be part of a call's epilogue is a step of its own if it does not lie as the call's result does.
  auto post = dyn_cast<PostOpInterface>(*op);
  if (post && format != result && post.getPostOp(number))
    cost += 2 * bytes;
  if (!readsWithGaps(op, number, format, result))
    return cost;
  // No more is read than what the result has elements for, and what is folded, unless the operation goes through lines
  // as it likes. Who looks elements up comes back to them.
  Definition definition = op.getDefinition();
  if (!definition.lines.empty())
    return cost + kGaps * bytes;
  double most = getBytes(op->getResult(0));
  for (const Loop &loop : llvm::drop_begin(definition.loops, definition.resultRank))
    if (!loop.isLookup())
      most *= std::max<int64_t>(1, loop.extent);
  bool looksUp = llvm::any_of(definition.reads, [&](const Access &access) {
    return access.operand == number && llvm::any_of(definition.getLookups(), [&](unsigned loop) {
             return llvm::any_of(access.dims, [&](const layout::AccessDim &dim) { return dim.index.dependsOn(loop); });
           });
  });
  if (looksUp)
    return cost + kGaps * most;
  return cost + kGaps * std::min(bytes, most);
}

double dovetail::getPortCost(Value value, FormatAttr format) {
  // Where dimensions of extent 1 lie does not matter.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  SmallVector<int64_t> dims(format.getOrder());
  llvm::erase_if(dims, [&](int64_t dim) { return shape[dim] == 1; });
  return llvm::is_sorted(dims) ? 0 : kGaps * getBytes(value);
}
