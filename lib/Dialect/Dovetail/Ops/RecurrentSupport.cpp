//===- RecurrentSupport.cpp - What recurrences have in common -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the activations of recurrences, how they go through time, and what is checked of all of them.
//
//===----------------------------------------------------------------------===//

#include "RecurrentSupport.h"
#include "../Definition/ScalarSupport.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

namespace {
using EmitFunction = Value (*)(ElementBuilder &builder, Value x, Value alpha, Value beta);
} // namespace

static Value emitAffine(ElementBuilder &builder, Value x, Value alpha, Value beta) {
  return builder.add(builder.mul(alpha, x), beta);
}

/// `x` from `bound` on, and `below` under it.
static Value emitFrom(ElementBuilder &builder, Value x, Value bound, Value below) {
  return builder.select(builder.create<arith::CmpFOp>(arith::CmpFPredicate::UGE, x, bound), x, below);
}

/// Functions of ONNX's LSTM, GRU and RNN; null for what is none.
static EmitFunction lookupFunction(StringRef name) {
  return llvm::StringSwitch<EmitFunction>(name)
      .Case("relu", [](ElementBuilder &builder, Value x, Value, Value) { return scalar::relu(builder, x); })
      .Case("tanh",
            [](ElementBuilder &builder, Value x, Value, Value) -> Value { return builder.create<math::TanhOp>(x); })
      .Case("sigmoid", [](ElementBuilder &builder, Value x, Value, Value) { return scalar::sigmoid(builder, x); })
      .Case("affine", emitAffine)
      .Case("leakyrelu", [](ElementBuilder &builder, Value x, Value alpha,
                            Value) { return emitFrom(builder, x, builder.zero(x.getType()), builder.mul(alpha, x)); })
      .Case("thresholdedrelu", [](ElementBuilder &builder, Value x, Value alpha,
                                  Value) { return emitFrom(builder, x, alpha, builder.zero(x.getType())); })
      .Case("scaledtanh",
            [](ElementBuilder &builder, Value x, Value alpha, Value beta) {
              return builder.mul(alpha, builder.create<math::TanhOp>(builder.mul(beta, x)));
            })
      .Case("hardsigmoid", [](ElementBuilder &builder, Value x, Value alpha,
                              Value beta) { return scalar::clamp(builder, emitAffine(builder, x, alpha, beta), 0, 1); })
      .Case("elu",
            [](ElementBuilder &builder, Value x, Value alpha, Value) {
              Value power = builder.sub(builder.create<math::ExpOp>(x), builder.constant(x.getType(), 1));
              return emitFrom(builder, x, builder.zero(x.getType()), builder.mul(alpha, power));
            })
      .Case("softsign",
            [](ElementBuilder &builder, Value x, Value, Value) {
              Value magnitude = builder.create<math::AbsFOp>(x);
              return builder.div(x, builder.add(builder.constant(x.getType(), 1), magnitude));
            })
      .Case("softplus",
            [](ElementBuilder &builder, Value x, Value, Value) {
              // log(1 + exp(x)) with an exponential that cannot overflow.
              Value power = builder.create<math::ExpOp>(builder.create<arith::NegFOp>(builder.create<math::AbsFOp>(x)));
              return builder.add(scalar::relu(builder, x), builder.create<math::Log1pOp>(power));
            })
      .Default(nullptr);
}

bool RecurrentFunctions::isKnown(StringRef name) { return lookupFunction(name) != nullptr; }

Value RecurrentFunctions::emit(ElementBuilder &builder, unsigned number, Value x) const {
  if (clip != 0)
    x = scalar::clamp(builder, x, -clip, clip);
  Value alpha = builder.constant(x.getType(), alphas[number]), beta = builder.constant(x.getType(), betas[number]);
  return lookupFunction(cast<StringAttr>(names[number]).getValue())(builder, x, alpha, beta);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

RecurrentLine::RecurrentLine(LineBuilder &line, int64_t numGates, std::optional<unsigned> lengths, bool isReversed)
    : line(line), elements(line.elements), lengths(lengths), isReversed(isReversed),
      steps(line.getDefinition().loops[0].extent), hidden(line.getDefinition().loops[2].extent),
      scratch(numGates * rowsAtOnce) {}

void RecurrentLine::forEachStep(function_ref<void()> body) {
  auto emit = [&](Value step) {
    now = isReversed ? elements.subI(elements.index(steps - 1), step) : step;
    before = elements.addI(now, isReversed ? 1 : -1);
    line.setLoop(0, now);
    body();
  };
  // What comes before the first step is an operand, later it is a result.
  isFirst = true;
  emit(elements.index(0));
  isFirst = false;
  if (steps > 1)
    elements.forEach(elements.index(1), elements.index(steps), emit);
}

void RecurrentLine::forEachBlock(function_ref<void(const Block &)> body) {
  auto [lo, hi] = line.getRange(1);
  auto emit = [&](ArrayRef<Value> rows, Value begin, Value end) {
    Block block{llvm::to_vector(rows), {}, begin, end};
    for (Value row : rows) {
      if (!lengths)
        continue;
      line.setLoop(1, row);
      Value length = elements.create<arith::IndexCastOp>(elements.getBuilder().getIndexType(), line.read(*lengths));
      block.isActive.push_back(elements.compareI(arith::CmpIPredicate::slt, now, length));
    }
    body(block);
  };
  int64_t width = std::min(panelWidth, hidden);
  elements.forEach(elements.index(0), elements.index(llvm::divideCeil(hidden, width)), [&](Value panel) {
    Value begin = elements.mulI(panel, width), end = elements.addI(begin, width);
    if (hidden % width != 0)
      end = elements.minI(end, elements.index(hidden));
    Value groups = elements.floorDivI(elements.subI(hi, lo), rowsAtOnce);
    Value rest = elements.addI(lo, elements.mulI(groups, rowsAtOnce));
    elements.forEach(elements.index(0), groups, [&](Value group) {
      SmallVector<Value> rows;
      for (int64_t row = 0; row < rowsAtOnce; ++row)
        rows.push_back(elements.addI(elements.addI(lo, elements.mulI(group, rowsAtOnce)), row));
      emit(rows, begin, end);
    });
    elements.forEach(rest, hi, [&](Value row) { emit(row, begin, end); });
  });
}

void RecurrentLine::forEachElement(const Block &block, function_ref<void(unsigned row, Value hidden)> body) {
  for (auto [number, row] : llvm::enumerate(block.rows))
    elements.forEach(block.begin, block.end, [&, row = row, number = number](Value at) {
      line.setLoop(1, row);
      line.setLoop(2, at);
      body(number, at);
    });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void RecurrentLine::emitTerms(const Block &block, unsigned gate, Value first, int64_t count,
                              function_ref<Value(Value row, Value from)> emitState) {
  SmallVector<Value> from;
  for (int64_t term = 0; term < count; ++term)
    from.push_back(elements.addI(first, term));
  SmallVector<SmallVector<Value>> states;
  for (Value row : block.rows)
    states.push_back(llvm::map_to_vector(from, [&](Value at) { return emitState(row, at); }));
  elements.forEach(block.begin, block.end, [&](Value to) {
    line.setLoop(2, to);
    SmallVector<Value> weights =
        llvm::map_to_vector(from, [&](Value at) { return line.read(1, {elements.index(gate), at}); });
    Value position = elements.subI(to, block.begin);
    for (auto [row, state] : llvm::enumerate(states)) {
      Value sum = line.getSink().loadScratch(getScratch(gate, row), type, position);
      for (auto [weight, factor] : llvm::zip_equal(weights, state))
        sum = elements.add(sum, elements.mul(factor, weight));
      line.getSink().storeScratch(getScratch(gate, row), position, sum);
    }
  });
}

void RecurrentLine::accumulate(const Block &block, unsigned gate, function_ref<Value()> emitInit,
                               function_ref<Value(Value row, Value from)> emitState) {
  forEachElement(block, [&](unsigned row, Value at) {
    Value init = emitInit();
    type = init.getType();
    Value &memory = getScratch(gate, row);
    if (!memory)
      memory = line.getSink().createScratch(type, std::min(panelWidth, hidden));
    line.getSink().storeScratch(memory, elements.subI(at, block.begin), init);
  });
  // Rows that have ended all keep what they have.
  Value groups = elements.index(hidden / termsAtOnce);
  if (!block.isActive.empty()) {
    Value isAnyActive = block.isActive.front();
    for (Value isActive : ArrayRef(block.isActive).drop_front())
      isAnyActive = elements.create<arith::OrIOp>(isAnyActive, isActive);
    groups = elements.select(isAnyActive, groups, elements.index(0));
  }
  elements.forEach(elements.index(0), groups, [&](Value group) {
    emitTerms(block, gate, elements.mulI(group, termsAtOnce), termsAtOnce, emitState);
  });
  if (int64_t rest = hidden % termsAtOnce)
    emitTerms(block, gate, elements.index(hidden - rest), rest, emitState);
}

Value RecurrentLine::load(const Block &block, unsigned gate, unsigned row, Value hidden) {
  return line.getSink().loadScratch(getScratch(gate, row), type, elements.subI(hidden, block.begin));
}

Value RecurrentLine::readBefore(unsigned result, unsigned initial, Value row, Value hidden) {
  if (!isFirst)
    return line.readBack(result, {before, row, hidden});
  Value outerRow = line.getLoop(1), outer = line.getLoop(2);
  line.setLoop(1, row);
  line.setLoop(2, hidden);
  Value value = line.read(initial);
  line.setLoop(1, outerRow);
  line.setLoop(2, outer);
  return value;
}

Value RecurrentLine::readNow(unsigned result, Value row, Value hidden) {
  return line.readBack(result, {now, row, hidden});
}

void RecurrentLine::write(unsigned result, const Block &block, unsigned row, Value hidden, Value element,
                          Value before) {
  if (!block.isActive.empty())
    element = elements.select(block.isActive[row], element, before);
  line.write(result, {now, block.rows[row], hidden}, element);
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

Definition dovetail::getRecurrentDefinition(RankedTensorType result) {
  Definition definition = Definition::over(result);
  definition.loops[0].kind = definition.loops[2].kind = LoopKind::Whole;
  definition.lines = {0, 1, 2};
  definition.addRead(0) = {Definition::at(0), Definition::at(1), IndexExpr::unknown(0), Definition::at(2)};
  definition.addRead(1) = {IndexExpr::unknown(0), IndexExpr::unknown(1), Definition::at(2)};
  definition.addRead(2) = {Definition::at(1), Definition::at(2)};
  return definition;
}

RankedTensorType dovetail::getStatesType(Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  ArrayRef<int64_t> shape = type.getShape();
  return RankedTensorType::get({shape[0], shape[1], shape[3]}, type.getElementType());
}

LogicalResult dovetail::verifyOptional(std::optional<Location> location, StringRef name, Value operand, StringRef what,
                                       ArrayRef<int64_t> shape, Value input, bool isLengths) {
  if (!operand)
    return success();
  auto type = cast<RankedTensorType>(operand.getType());
  bool fits = isLengths ? isa<IntegerType>(type.getElementType())
                        : type.getElementType() == getElementTypeOrSelf(input.getType());
  if (type.getShape() == shape && fits)
    return success();
  std::string extents = llvm::join(llvm::map_range(shape, [](int64_t extent) { return std::to_string(extent); }), "x");
  return emitOptionalError(location, "'", name, "' op has ", what, " of ", type, ", not of shape ", extents,
                           isLengths ? " and integers" : " and the input's elements");
}

LogicalResult dovetail::verifyRecurrence(std::optional<Location> location, StringRef name, ValueRange operands,
                                         int64_t numGates, ArrayAttr functions, ArrayRef<float> alphas,
                                         ArrayRef<float> betas, const APFloat &clip, size_t numFunctions) {
  auto input = cast<RankedTensorType>(operands[0].getType());
  Type type = input.getElementType();
  if (input.getRank() != 4 || input.getDimSize(2) != numGates || (!type.isF32() && !type.isF64()))
    return emitOptionalError(location, "'", name, "' op has input ", input, ", not f32 or f64 of [time, batch, ",
                             numGates, ", hidden]");
  int64_t batch = input.getDimSize(1), hidden = input.getDimSize(3);
  if (hidden == 0)
    return emitOptionalError(location, "'", name, "' op has no hidden elements");
  if (failed(verifyOptional(location, name, operands[1], "weights", {numGates, hidden, hidden}, operands[0])) ||
      failed(verifyOptional(location, name, operands[2], "first states", {batch, hidden}, operands[0])))
    return failure();
  if (functions.size() != numFunctions || alphas.size() != numFunctions || betas.size() != numFunctions)
    return emitOptionalError(location, "'", name, "' op needs ", numFunctions, " functions, each with alpha and beta");
  for (Attribute function : functions)
    if (!RecurrentFunctions::isKnown(cast<StringAttr>(function).getValue()))
      return emitOptionalError(location, "'", name, "' op has the function ", function, ", which is not known");
  if (clip.isNegative() || clip.isNaN())
    return emitOptionalError(location, "'", name, "' op has a clip below 0");
  return success();
}
