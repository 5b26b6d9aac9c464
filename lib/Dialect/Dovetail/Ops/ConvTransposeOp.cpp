//===- ConvTransposeOp.cpp - Transposed convolution -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.conv_transpose`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "WindowSupport.h"

#include "dovetail/Dialect/Dovetail/IR/ProductInterface.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;

/// The windows of the convolution whose gradient this is.
static Windows windowsOf(ConvTransposeOp op) {
  return getWindows(op.getWeights().getType().getShape().drop_front(2), op.getStrides(), op.getDilations(),
                    op.getPadsLow(), op.getPadsHigh());
}

FailureOr<RankedTensorType> ConvTransposeOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto weights = cast<RankedTensorType>(adaptor.getWeights().getType());
  if (failed(verifySpatial(location, name, "input", input)))
    return failure();
  if (weights.getRank() != input.getRank() || weights.getElementType() != input.getElementType() ||
      weights.getDimSize(0) != input.getDimSize(1))
    return emitOptionalError(location, "'", name, "' op has weights ", weights, " that do not fit its input ", input);
  int64_t groups = adaptor.getGroups();
  if (failed(verifyGroups(location, name, groups, input.getDimSize(1), "input channels")) ||
      failed(verifyGroups(location, name, groups, weights.getDimSize(1) * groups, "output channels")))
    return failure();
  auto windows =
      inferWindows(location, name, input.getRank() - 2, weights.getShape().drop_front(2), adaptor.getStrides(),
                   adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh());
  if (failed(windows))
    return failure();
  ArrayRef<int64_t> outputPadding = adaptor.getOutputPadding();
  if (outputPadding.size() != windows->size())
    return emitOptionalError(location, "'", name, "' op has ", outputPadding.size(), " output paddings for ",
                             windows->size(), " spatial dimensions");

  SmallVector<int64_t> shape{input.getDimSize(0), weights.getDimSize(1) * groups};
  for (auto [dim, window] : llvm::enumerate(*windows)) {
    if (outputPadding[dim] < 0)
      return emitOptionalError(location, "'", name, "' op has a negative output padding, ", outputPadding[dim],
                               ", in spatial dimension ", dim);
    // Its product with a stride, which is limited too, must be a number.
    if (input.getDimSize(dim + 2) > (int64_t(1) << 30))
      return emitOptionalError(location, "'", name, "' op has an input ", input, " whose spatial dimension ", dim,
                               " is longer than 2^30");
    int64_t extent = window.stride * (input.getDimSize(dim + 2) - 1) + outputPadding[dim] + window.span() -
                     window.padLow - window.padHigh;
    if (extent < 0)
      return emitOptionalError(location, "'", name, "' op crops spatial dimension ", dim, " to a negative extent, ",
                               extent);
    shape.push_back(extent);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

OpRelation ConvTransposeOp::getRelation() {
  RankedTensorType input = getInput().getType(), weights = getWeights().getType(), result = getType();
  int64_t groups = getGroups();
  int reduction = result.getRank();

  OpRelation relation;
  for (int64_t extent : result.getShape())
    relation.loops.push_back({extent});
  relation.loops.push_back({input.getDimSize(1) / groups, groups == 1 ? LoopKind::Reduction : LoopKind::Whole});

  DimRelation inputChannels =
      groups == 1 ? DimRelation::identity(reduction) : relateGroups(input.getDimSize(1), result.getDimSize(1), groups);
  SmallVector<DimRelation> inputDims{DimRelation::identity(0), inputChannels};
  for (auto [dim, window] : llvm::enumerate(windowsOf(*this)))
    inputDims.push_back({static_cast<int>(dim) + 2,
                         DimMap::transposedWindow(window.extent, window.stride, window.dilation, window.padLow)});

  SmallVector<DimRelation> weightDims(weights.getRank(), DimRelation::whole());
  weightDims[0] = inputChannels;
  if (groups == 1)
    weightDims[1] = DimRelation::identity(1);
  relation.operands = {inputDims, weightDims};
  return relation;
}

bool ConvTransposeOp::isLinearIn(unsigned operand) { return true; }

FormatPreference ConvTransposeOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool ConvTransposeOp::isCheapElement() { return false; }

Value ConvTransposeOp::emitInit(ElementBuilder &builder) {
  return builder.zero(getAccumulatorType(getType().getElementType()));
}

/// The position in an operand dimension of `extent` from where tap `tap` reaches result index `index`, and whether
/// there is one: the tap reaches it from `position * stride`.
static std::pair<Value, Value> getSource(ElementBuilder &builder, const WindowDim &window, int64_t extent, Value index,
                                         Value tap) {
  Value scaled = builder.subI(builder.addI(index, window.padLow), builder.mulI(tap, window.dilation));
  Value source = builder.floorDivI(scaled, window.stride);
  Value reached = builder.inRange(source, 0, extent);
  if (window.stride != 1)
    reached =
        builder.andB(reached, builder.compareI(arith::CmpIPredicate::eq, scaled, builder.mulI(source, window.stride)));
  return {source, reached};
}

namespace {
/// Emits the loops over the taps that reach one result element, outermost dimension first.
struct TransposedFold {
  ElementBuilder &builder;
  ArrayRef<WindowDim> windows;
  ArrayRef<int64_t> operandShape;
  ArrayRef<Value> index;
  function_ref<Value(ArrayRef<Value>, ArrayRef<Value>, Value)> body;
  SmallVector<Value> position;
  SmallVector<Value> taps;

  Value emit(Value init) {
    size_t dim = position.size();
    if (dim == windows.size())
      return body(position, taps, init);
    const WindowDim &window = windows[dim];
    return builder
        .forLoop(
            builder.index(0), builder.index(window.extent), init,
            [&](Value tap, ValueRange carried) -> SmallVector<Value> {
              Value accumulator = carried.front();
              auto [source, reached] = getSource(builder, window, operandShape[dim], index[dim], tap);
              position.push_back(source);
              taps.push_back(tap);
              Value next =
                  builder.guarded(reached, accumulator.getType(), [&] { return emit(accumulator); }, accumulator);
              position.pop_back();
              taps.pop_back();
              return {next};
            },
            maxUnrolledWindow)
        .front();
  }
};
} // namespace

/// The input channel that is channel `channel` of the group of a result channel, which the latter is in its group.
static std::pair<Value, Value> getWeightChannels(ConvTransposeOp op, ElementBuilder &builder, Value resultChannel,
                                                 Value channel) {
  int64_t groups = op.getGroups(), resultChannels = op.getType().getDimSize(1);
  Value inputChannel =
      getChannelOfGroup(builder, resultChannel, resultChannels, channel, op.getInput().getType().getDimSize(1), groups);
  return {inputChannel, groups == 1 ? resultChannel : builder.floorModI(resultChannel, resultChannels / groups)};
}

Value ConvTransposeOp::emitTerm(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  RankedTensorType input = getInput().getType();
  auto [inputChannel, groupChannel] = getWeightChannels(*this, builder, index[1], index.back());
  Windows windows = windowsOf(*this);
  Value init = emitInit(builder);
  auto body = [&](ArrayRef<Value> position, ArrayRef<Value> tap, Value accumulator) {
    SmallVector<Value> inputIndex{index[0], inputChannel}, weightIndex{inputChannel, groupChannel};
    inputIndex.append(position.begin(), position.end());
    weightIndex.append(tap.begin(), tap.end());
    Value x = widen(builder, elements.read(0, inputIndex), init.getType());
    Value w = widen(builder, elements.read(1, weightIndex), init.getType());
    return builder.add(accumulator, builder.mul(x, w));
  };
  return TransposedFold{builder, windows, input.getShape().drop_front(2), index.drop_front(2).drop_back(), body, {}, {}}
      .emit(init);
}

Value ConvTransposeOp::emitCombine(ElementBuilder &builder, Value accumulator, Value term) {
  return builder.add(accumulator, term);
}

Value ConvTransposeOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  return foldTerms(*this, builder, index, elements, /*numReductionLoops=*/1);
}

namespace {
struct ConvTransposeProducts : ProductOpInterface::ExternalModel<ConvTransposeProducts, ConvTransposeOp> {
  SmallVector<int64_t> getTaps(Operation *op) const {
    return llvm::to_vector(cast<ConvTransposeOp>(op).getWeights().getType().getShape().drop_front(2));
  }

  int64_t countSharing(Operation *op, unsigned operand, unsigned loop) const {
    auto conv = cast<ConvTransposeOp>(op);
    return dovetail::countSharing(conv.getType(), conv.getGroups(), operand, loop);
  }

  Factor getFactor(Operation *op, ElementBuilder &builder, unsigned operand, ArrayRef<Value> index) const {
    auto conv = cast<ConvTransposeOp>(op);
    RankedTensorType input = conv.getInput().getType();
    int64_t rank = input.getRank();
    auto [inputChannel, groupChannel] = getWeightChannels(conv, builder, index[1], index[rank]);
    ArrayRef<Value> taps = index.drop_front(rank + 1);
    if (operand == 1) {
      Factor weight{{inputChannel, groupChannel}, {}};
      llvm::append_range(weight.index, taps);
      return weight;
    }
    Factor factor{{index[0], inputChannel}, builder.boolean(true)};
    for (auto [number, window] : llvm::enumerate(windowsOf(conv))) {
      unsigned dim = number + 2;
      auto [source, reached] = getSource(builder, window, input.getDimSize(dim), index[dim], taps[number]);
      factor.index.push_back(source);
      factor.isInside = builder.andB(factor.isInside, reached);
    }
    return factor;
  }
};
} // namespace

void dovetail::attachConvTransposeProducts(MLIRContext *context) {
  ConvTransposeOp::attachInterface<ConvTransposeProducts>(*context);
}
