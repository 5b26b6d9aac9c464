//===- ConvOp.cpp - Convolution -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.conv`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "WindowSupport.h"

#include "dovetail/Dialect/Dovetail/IR/ProductInterface.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;

static Windows windowsOf(ConvOp op) {
  return getWindows(op.getWeights().getType().getShape().drop_front(2), op.getStrides(), op.getDilations(),
                    op.getPadsLow(), op.getPadsHigh());
}

FailureOr<RankedTensorType> ConvOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto weights = cast<RankedTensorType>(adaptor.getWeights().getType());
  if (failed(verifySpatial(location, name, "input", input)))
    return failure();
  if (weights.getRank() != input.getRank() || weights.getElementType() != input.getElementType())
    return emitOptionalError(location, "'", name, "' op has weights ", weights, " that do not fit its input ", input);
  int64_t groups = adaptor.getGroups();
  if (failed(verifyGroups(location, name, groups, input.getDimSize(1), "input channels")) ||
      failed(verifyGroups(location, name, groups, weights.getDimSize(0), "output channels")))
    return failure();
  if (weights.getDimSize(1) * groups != input.getDimSize(1))
    return emitOptionalError(location, "'", name, "' op has weights for ", groups, " groups of ", weights.getDimSize(1),
                             " input channels, but the input has ", input.getDimSize(1));
  auto windows =
      inferWindows(location, name, input.getRank() - 2, weights.getShape().drop_front(2), adaptor.getStrides(),
                   adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh());
  if (failed(windows))
    return failure();

  SmallVector<int64_t> shape{input.getDimSize(0), weights.getDimSize(0)};
  for (auto [dim, window] : llvm::enumerate(*windows)) {
    int64_t extent = input.getDimSize(dim + 2) + window.padLow + window.padHigh;
    if (extent < window.span())
      return emitOptionalError(location, "'", name, "' op has a window that spans ", window.span(),
                               " positions of spatial dimension ", dim, ", which has ", extent, " with its pads");
    shape.push_back((extent - window.span()) / window.stride + 1);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

OpRelation ConvOp::getRelation() {
  RankedTensorType input = getInput().getType(), weights = getWeights().getType(), result = getType();
  int64_t groups = getGroups();
  int reduction = result.getRank();

  OpRelation relation;
  for (int64_t extent : result.getShape())
    relation.loops.push_back({extent});
  relation.loops.push_back({weights.getDimSize(1), groups == 1 ? LoopKind::Reduction : LoopKind::Whole});

  SmallVector<DimRelation> inputDims{DimRelation::identity(0)};
  inputDims.push_back(groups == 1 ? DimRelation::identity(reduction)
                                  : relateGroups(input.getDimSize(1), result.getDimSize(1), groups));
  for (auto [dim, window] : llvm::enumerate(windowsOf(*this)))
    inputDims.push_back(
        {static_cast<int>(dim) + 2, DimMap::window(window.extent, window.stride, window.dilation, window.padLow)});

  SmallVector<DimRelation> weightDims(weights.getRank(), DimRelation::whole());
  weightDims[0] = DimRelation::identity(1);
  if (groups == 1)
    weightDims[1] = DimRelation::identity(reduction);
  relation.operands = {inputDims, weightDims};
  return relation;
}

bool ConvOp::isLinearIn(unsigned operand) { return true; }

FormatPreference ConvOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool ConvOp::isCheapElement() { return false; }

Value ConvOp::emitInit(ElementBuilder &builder) { return builder.zero(getAccumulatorType(getType().getElementType())); }

Value ConvOp::emitTerm(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  RankedTensorType input = getInput().getType(), result = getType();
  Value channel = index.back();
  Value inputChannel =
      getChannelOfGroup(builder, index[1], result.getDimSize(1), channel, input.getDimSize(1), getGroups());
  Windows windows = windowsOf(*this);
  Value init = emitInit(builder);
  return foldWindow(builder, windows, input.getShape().drop_front(2), result.getShape().drop_front(2),
                    index.drop_front(2).drop_back(), init,
                    [&](ArrayRef<Value> position, ArrayRef<Value> tap, Value accumulator) {
                      SmallVector<Value> inputIndex{index[0], inputChannel}, weightIndex{index[1], channel};
                      inputIndex.append(position.begin(), position.end());
                      weightIndex.append(tap.begin(), tap.end());
                      Value x = widen(builder, elements.read(0, inputIndex), init.getType());
                      Value w = widen(builder, elements.read(1, weightIndex), init.getType());
                      return builder.add(accumulator, builder.mul(x, w));
                    });
}

Value ConvOp::emitCombine(ElementBuilder &builder, Value accumulator, Value term) {
  return builder.add(accumulator, term);
}

Value ConvOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  return foldTerms(*this, builder, index, elements, /*numReductionLoops=*/1);
}

namespace {
struct ConvProducts : ProductOpInterface::ExternalModel<ConvProducts, ConvOp> {
  SmallVector<int64_t> getTaps(Operation *op) const {
    return llvm::to_vector(cast<ConvOp>(op).getWeights().getType().getShape().drop_front(2));
  }

  int64_t countSharing(Operation *op, unsigned operand, unsigned loop) const {
    auto conv = cast<ConvOp>(op);
    return dovetail::countSharing(conv.getType(), conv.getGroups(), operand, loop);
  }

  Factor getFactor(Operation *op, ElementBuilder &builder, unsigned operand, ArrayRef<Value> index) const {
    auto conv = cast<ConvOp>(op);
    RankedTensorType input = conv.getInput().getType(), result = conv.getType();
    int64_t rank = result.getRank();
    Value channel = index[rank];
    ArrayRef<Value> taps = index.drop_front(rank + 1);
    if (operand == 1) {
      Factor weight{{index[1], channel}, {}};
      llvm::append_range(weight.index, taps);
      return weight;
    }
    Factor factor{{index[0], getChannelOfGroup(builder, index[1], result.getDimSize(1), channel, input.getDimSize(1),
                                               conv.getGroups())},
                  builder.boolean(true)};
    for (auto [number, window] : llvm::enumerate(windowsOf(conv))) {
      unsigned dim = number + 2;
      Value position = getPosition(builder, window, index[dim], taps[number]);
      factor.index.push_back(position);
      factor.isInside = builder.andB(factor.isInside, isInsideOperand(builder, window, input.getDimSize(dim),
                                                                      result.getDimSize(dim), taps[number], position));
    }
    return factor;
  }
};
} // namespace

void dovetail::attachConvProducts(MLIRContext *context) { ConvOp::attachInterface<ConvProducts>(*context); }
