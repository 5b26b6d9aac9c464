//===- TupleFold.cpp - Folds that only the operation can combine ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the types and loops of folds to several values, and how they are divided among ranks.
//
//===----------------------------------------------------------------------===//

#include "TupleFold.h"
#include "Restarts.h"

using namespace mlir;
using namespace dovetail;

/// The positions that divide axis number `number`.
static ArrayRef<int64_t> getPositions(ArrayAttr restarts, unsigned number) {
  return restarts ? cast<DenseI64ArrayAttr>(restarts[number]).asArrayRef() : ArrayRef<int64_t>();
}

FailureOr<SmallVector<int64_t>> dovetail::inferTupleShape(std::optional<Location> location, StringRef name,
                                                          ValueRange inputs, unsigned numResults, StringRef results,
                                                          ArrayRef<int64_t> axes, ArrayAttr restarts) {
  if (inputs.size() != 1 && inputs.size() != numResults)
    return emitOptionalError(location, "'", name, "' op has ", inputs.size(), " inputs, but needs elements, or ",
                             results, " of parts");
  auto input = cast<RankedTensorType>(inputs.front().getType());
  for (Value other : inputs.drop_front())
    if (cast<RankedTensorType>(other.getType()).getShape() != input.getShape())
      return emitOptionalError(location, "'", name, "' op combines ", input, " and ", other.getType(),
                               ", which must have one shape");
  if (failed(verifyAxes(location, name, axes, input.getRank())))
    return failure();
  if (restarts && (restarts.size() != axes.size() || inputs.size() != 1))
    return emitOptionalError(location, "'", name, "' op has ", inputs.size(), " inputs and ", axes.size(),
                             " axes, but restarts for ", restarts.size(), ", which only one input can have");
  SmallVector<int64_t> shape(input.getShape());
  for (auto [number, axis] : llvm::enumerate(axes)) {
    ArrayRef<int64_t> positions = getPositions(restarts, number);
    if (failed(verifyRestarts(location, name, positions, input.getDimSize(axis))))
      return failure();
    shape[axis] = static_cast<int64_t>(positions.size()) + 1;
  }
  return shape;
}

LogicalResult dovetail::inferFloatTuple(std::optional<Location> location, StringRef name, ValueRange inputs,
                                        unsigned numResults, StringRef results, ArrayRef<int64_t> axes,
                                        ArrayAttr restarts, SmallVectorImpl<Type> &types) {
  for (Value input : inputs)
    if (Type element = getElementTypeOrSelf(input); !isa<FloatType>(element))
      return emitOptionalError(location, "'", name, "' op needs floats, but has elements of ", element);
  FailureOr<SmallVector<int64_t>> shape = inferTupleShape(location, name, inputs, numResults, results, axes, restarts);
  if (failed(shape))
    return failure();
  // Counts and squares need more range than 16-bit floats have.
  types.assign(numResults, RankedTensorType::get(*shape, getAccumulatorType(getElementTypeOrSelf(inputs.front()))));
  return success();
}

Definition dovetail::getTupleDefinition(ValueRange inputs, RankedTensorType result, ArrayRef<int64_t> axes,
                                        ArrayAttr restarts, ArrayRef<FoldPass> passes) {
  auto input = cast<RankedTensorType>(inputs.front().getType());
  bool combinesParts = inputs.size() > 1;
  Definition definition = Definition::over(result);
  definition.isFold = true;
  if (!combinesParts)
    definition.passes.assign(passes.begin(), passes.end());
  SmallVector<layout::AccessDim> dims;
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    dims.push_back(Definition::at(dim));
  for (auto [number, axis] : llvm::enumerate(axes)) {
    ArrayRef<int64_t> positions = getPositions(restarts, number);
    int64_t extent = input.getDimSize(axis);
    if (!positions.empty()) {
      dims[axis] = definition.addPartLoop(axis, getPartEnds(positions, extent), number);
      continue;
    }
    definition.loops[axis].kind = LoopKind::Whole;
    dims[axis] = definition.addLoop(extent, combinesParts ? LoopKind::Whole : LoopKind::Reduction, std::nullopt);
  }
  for (unsigned operand = 0; operand < inputs.size(); ++operand)
    definition.addRead(operand) = dims;
  return definition;
}

Value dovetail::readTerm(BodyBuilder &body) {
  SmallVector<Value> terms(body.getLoops().drop_front(body.getDefinition().resultRank));
  return body.read(0, terms);
}

FailureOr<SmallVector<Value>>
dovetail::decomposeTuple(OpBuilder &builder, ValueRange inputs, ArrayRef<int64_t> axes, ArrayAttr restarts,
                         ArrayRef<DimShardingAttr> loops,
                         function_ref<ValueRange(ValueRange, ArrayRef<int64_t>, ArrayAttr)> create) {
  if (inputs.size() > 1 || restarts)
    return failure();
  auto input = cast<RankedTensorType>(inputs.front().getType());
  SmallVector<Attribute> positions;
  SmallVector<int64_t> divided;
  for (auto [axis, loop] : llvm::zip_equal(axes, loops.drop_front(input.getRank()))) {
    std::optional<SmallVector<int64_t>> starts = getRestarts(loop, input.getDimSize(axis));
    if (!starts)
      return failure();
    positions.push_back(builder.getDenseI64ArrayAttr(*starts));
    if (!starts->empty())
      divided.push_back(axis);
  }
  // Where one rank has all terms, there is nothing to combine.
  if (divided.empty())
    return failure();
  SmallVector<Value> parts = create(inputs, axes, builder.getArrayAttr(positions));
  return SmallVector<Value>(create(parts, divided, ArrayAttr()));
}
