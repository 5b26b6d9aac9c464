//===- RecurrentOps.cpp - Recurrences along time --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.lstm`, `dovetail.gru` and `dovetail.rnn`, row programs that write the states of all steps: those
// of the step before are read back from there.
//
//===----------------------------------------------------------------------===//

#include "RecurrentSupport.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

/// The read of operand number `number` of those that are declared, if it is there: each operand is read at one place.
template <typename OpT> static std::optional<unsigned> getRead(OpT op, unsigned number) {
  auto [first, count] = op.getODSOperandIndexAndLength(number);
  return count == 0 ? std::nullopt : std::optional<unsigned>(first);
}

/// The type of results, once what all recurrences have is right.
template <typename OpT>
static FailureOr<RankedTensorType> inferStates(std::optional<Location> location, typename OpT::Adaptor adaptor) {
  StringRef name = OpT::getOperationName();
  Value input = adaptor.getInput();
  if (failed(verifyRecurrence(location, name, adaptor.getOperands(), OpT::numGates, adaptor.getFunctions(),
                              adaptor.getAlphas(), adaptor.getBetas(), adaptor.getClip(), OpT::numFunctions)))
    return failure();
  RankedTensorType type = getStatesType(input);
  if (failed(verifyOptional(location, name, adaptor.getLengths(), "lengths", type.getDimSize(1), input,
                            /*isLengths=*/true)))
    return failure();
  return type;
}

//===----------------------------------------------------------------------===//
// LSTM
//===----------------------------------------------------------------------===//

LogicalResult LstmOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> type = inferStates<LstmOp>(location, adaptor);
  if (failed(type))
    return failure();
  StringRef name = getOperationName();
  Value input = adaptor.getInput();
  int64_t batch = type->getDimSize(1), hidden = type->getDimSize(2);
  if (failed(verifyOptional(location, name, adaptor.getInitialCells(), "first cells", {batch, hidden}, input)) ||
      failed(verifyOptional(location, name, adaptor.getPeepholes(), "peepholes", {3, hidden}, input)))
    return failure();
  types.append(2, *type);
  return success();
}

Definition LstmOp::getDefinition() {
  Definition definition = getRecurrentDefinition(getType());
  definition.addRead(3) = {Definition::at(1), Definition::at(2)};
  if (std::optional<unsigned> read = getRead(*this, 4))
    definition.addRead(*read) = {IndexExpr::unknown(0), Definition::at(2)};
  if (std::optional<unsigned> read = getRead(*this, 5))
    definition.addRead(*read) = {Definition::at(1)};
  return definition;
}

void LstmOp::emitLine(LineBuilder &line) {
  enum Gate : unsigned { In, Out, Forget, Cell };
  std::optional<unsigned> peepholes = getRead(*this, 4);
  ElementBuilder &elements = line.elements;
  RecurrentFunctions functions(getFunctions(), getAlphas(), getBetas(), getClip().convertToDouble());
  RecurrentLine time(line, numGates, getRead(*this, 5), getReverse());
  time.forEachStep([&] {
    time.forEachBlock([&](const RecurrentLine::Block &block) {
      auto state = [&](Value row, Value from) { return time.readBefore(0, 2, row, from); };
      for (unsigned gate : {In, Out, Forget, Cell})
        time.accumulate(block, gate, [&] { return time.readInput(gate); }, state);
      time.forEachElement(block, [&](unsigned row, Value at) {
        Value cell = time.readBefore(1, 3, block.rows[row], at);
        auto open = [&](Gate gate, Value seen) {
          Value x = time.load(block, gate, row, at);
          if (peepholes)
            x = elements.add(x, elements.mul(line.read(*peepholes, elements.index(gate)), seen));
          return functions.emit(elements, 0, x);
        };
        Value in = open(In, cell);
        Value forget = getCouple() ? elements.sub(elements.constant(in.getType(), 1), in) : open(Forget, cell);
        Value candidate = functions.emit(elements, 1, time.load(block, Cell, row, at));
        Value next = elements.add(elements.mul(forget, cell), elements.mul(in, candidate));
        Value out = open(Out, next);
        // What is limited is what sums come to, not the cell.
        Value bent = RecurrentFunctions(getFunctions(), getAlphas(), getBetas(), /*clip=*/0).emit(elements, 2, next);
        Value before = block.isActive.empty() ? Value() : state(block.rows[row], at);
        time.write(1, block, row, at, next, cell);
        time.write(0, block, row, at, elements.mul(out, bent), before);
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// GRU
//===----------------------------------------------------------------------===//

LogicalResult GruOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> type = inferStates<GruOp>(location, adaptor);
  if (failed(type) || failed(verifyOptional(location, getOperationName(), adaptor.getBias(), "bias",
                                            type->getDimSize(2), adaptor.getInput())))
    return failure();
  types.append(2, *type);
  return success();
}

Definition GruOp::getDefinition() {
  Definition definition = getRecurrentDefinition(getType());
  if (std::optional<unsigned> read = getRead(*this, 3))
    definition.addRead(*read) = {Definition::at(2)};
  if (std::optional<unsigned> read = getRead(*this, 4))
    definition.addRead(*read) = {Definition::at(1)};
  return definition;
}

void GruOp::emitLine(LineBuilder &line) {
  enum Gate : unsigned { Update, Reset, Candidate };
  std::optional<unsigned> bias = getRead(*this, 3);
  ElementBuilder &elements = line.elements;
  RecurrentFunctions functions(getFunctions(), getAlphas(), getBetas(), getClip().convertToDouble());
  RecurrentLine time(line, numGates, getRead(*this, 4), getReverse());
  auto state = [&](Value row, Value from) { return time.readBefore(0, 2, row, from); };
  auto open = [&](const RecurrentLine::Block &block, Gate gate, unsigned row, Value at) {
    return functions.emit(elements, 0, time.load(block, gate, row, at));
  };
  /// The new state from the update gate, the candidate and the old state.
  auto finish = [&](const RecurrentLine::Block &block, unsigned row, Value at, Value update, Value candidate) {
    Value old = state(block.rows[row], at);
    Value rest = elements.sub(elements.constant(update.getType(), 1), update);
    Value next = elements.add(elements.mul(rest, candidate), elements.mul(update, old));
    time.write(0, block, row, at, next, old);
  };
  time.forEachStep([&] {
    time.forEachBlock([&](const RecurrentLine::Block &block) {
      for (unsigned gate : {Update, Reset})
        time.accumulate(block, gate, [&] { return time.readInput(gate); }, state);
      if (bias)
        time.accumulate(block, Candidate, [&] { return line.read(*bias); }, state);
      time.forEachElement(block, [&](unsigned row, Value at) {
        Value update = open(block, Update, row, at), reset = open(block, Reset, row, at);
        if (bias) {
          Value product = elements.mul(reset, time.load(block, Candidate, row, at));
          Value candidate = functions.emit(elements, 1, elements.add(time.readInput(Candidate), product));
          line.write(1, {line.getLoop(0), block.rows[row], at}, product);
          return finish(block, row, at, update, candidate);
        }
        // The product needs all of r h. The place of the new state has the update gate until then.
        line.write(0, {line.getLoop(0), block.rows[row], at}, update);
        line.write(1, {line.getLoop(0), block.rows[row], at}, elements.mul(reset, state(block.rows[row], at)));
      });
    });
    if (bias)
      return;
    time.forEachBlock([&](const RecurrentLine::Block &block) {
      time.accumulate(
          block, Candidate, [&] { return time.readInput(Candidate); },
          [&](Value row, Value from) { return time.readNow(1, row, from); });
      time.forEachElement(block, [&](unsigned row, Value at) {
        Value candidate = functions.emit(elements, 1, time.load(block, Candidate, row, at));
        finish(block, row, at, time.readNow(0, block.rows[row], at), candidate);
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// RNN
//===----------------------------------------------------------------------===//

LogicalResult RnnOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> type = inferStates<RnnOp>(location, adaptor);
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

Definition RnnOp::getDefinition() {
  Definition definition = getRecurrentDefinition(getType());
  if (std::optional<unsigned> read = getRead(*this, 3))
    definition.addRead(*read) = {Definition::at(1)};
  return definition;
}

void RnnOp::emitLine(LineBuilder &line) {
  RecurrentFunctions functions(getFunctions(), getAlphas(), getBetas(), getClip().convertToDouble());
  RecurrentLine time(line, numGates, getRead(*this, 3), getReverse());
  time.forEachStep([&] {
    time.forEachBlock([&](const RecurrentLine::Block &block) {
      auto state = [&](Value row, Value from) { return time.readBefore(0, 2, row, from); };
      time.accumulate(block, 0, [&] { return time.readInput(0); }, state);
      time.forEachElement(block, [&](unsigned row, Value at) {
        Value before = block.isActive.empty() ? Value() : state(block.rows[row], at);
        time.write(0, block, row, at, functions.emit(line.elements, 0, time.load(block, 0, row, at)), before);
      });
    });
  });
}
