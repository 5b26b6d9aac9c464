//===- Recurrent.cpp - Import of LSTM, GRU and RNN ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LSTM, GRU and RNN: for each direction, the product of all steps' inputs with the weights, and the recurrence.
//
//===----------------------------------------------------------------------===//

#include "../../Build/Contractions.h"
#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/RecurrentOps.h"

using namespace dovetail;
using namespace dovetail::importer;

namespace {

/// Activations of one direction, with what they are given.
struct Functions {
  llvm::SmallVector<std::string> names;
  llvm::SmallVector<float> alphas, betas;
};

/// What a direction gives: the states of all steps, [time, batch, hidden], and the cells of an LSTM.
struct States {
  mlir::Value states, cells;
};

class Recurrence {
public:
  /// `defaults`: the activations of one direction.
  Recurrence(OnnxNode &node, int64_t numGates, llvm::ArrayRef<llvm::StringRef> defaults)
      : node(node), numGates(numGates), defaults(defaults) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult readShapes();
  llvm::LogicalResult readFunctions();
  /// Fails unless operand number `index` is a tensor of this shape and the input's elements, or left out.
  llvm::LogicalResult checkOperand(unsigned index, llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  llvm::LogicalResult readLengths();
  /// `sequence_lens`; null if it is left out, or says that all rows go to the end.
  llvm::FailureOr<mlir::Value> readGivenLengths();

  /// Operand number `index` for direction `number`, widened, in `shape`; null if it is left out.
  mlir::Value takeDirection(unsigned index, int64_t number, llvm::ArrayRef<int64_t> shape);
  /// The first states, or cells, of a direction, [batch, hidden]: zeros if they are left out.
  mlir::Value takeInitial(unsigned index, int64_t number);
  /// Elements [first, first + count) of a vector.
  mlir::Value takePart(mlir::Value vector, int64_t first, int64_t count);
  States build(int64_t number);
  States buildOp(int64_t number, mlir::Value input, mlir::Value weights, mlir::Value recurrentBias);

  /// Results of all directions as ONNX orders them, with the model's element type.
  mlir::Value joinSteps(llvm::ArrayRef<mlir::Value> states);
  mlir::Value joinLast(llvm::ArrayRef<mlir::Value> states, llvm::ArrayRef<mlir::Value> initial);

  bool isReversed(int64_t number) const { return number == 1 || node.getString("direction", "forward") == "reverse"; }
  bool isLstm() const { return numGates == 4; }
  bool isLinearBeforeReset() const { return numGates == 3 && node.getInt("linear_before_reset", 0) != 0; }

  OnnxNode &node;
  int64_t numGates;
  llvm::ArrayRef<llvm::StringRef> defaults;
  bool isBatchFirst = false;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  std::vector<Functions> functions;
  mlir::Value input; ///< Not bounded along time.
  /// The lengths of rows, as i64, and for each element of the states whether it is before the end; null if all are.
  mlir::Value lengths, isBeforeEnd;
  mlir::Value stepCount; ///< How many steps a run has, if that is not known.
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands and attributes
//===----------------------------------------------------------------------===//

llvm::LogicalResult Recurrence::checkOperand(unsigned index, llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  mlir::Value operand = node.getInput(index);
  if (!operand)
    return llvm::success();
  if (OnnxNode::getShape(operand) == shape &&
      OnnxNode::getType(operand).getElementType() == OnnxNode::getType(node.getInput(0)).getElementType())
    return llvm::success();
  std::string extents = llvm::join(llvm::map_range(shape, [](int64_t extent) { return std::to_string(extent); }), "x");
  return node.invalid("'" + name + "' is not a tensor of shape " + extents + " with the input's elements");
}

llvm::LogicalResult Recurrence::readShapes() {
  mlir::Value input = node.getInput(0), weights = node.getInput(2);
  isBatchFirst = node.getInt("layout", 0) != 0;
  if (OnnxNode::getRank(input) != 3 || OnnxNode::getRank(weights) != 3)
    return node.invalid("'X' and 'R' must have 3 dimensions");
  llvm::ArrayRef<int64_t> shape = OnnxNode::getShape(input);
  steps = shape[isBatchFirst ? 1 : 0];
  batch = shape[isBatchFirst ? 0 : 1];
  inputs = shape[2];
  llvm::StringRef direction = node.getString("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return node.invalid("'direction' is '" + direction + "', not forward, reverse or bidirectional");
  directions = direction == "bidirectional" ? 2 : 1;
  hidden = node.getInt("hidden_size", OnnxNode::getShape(weights)[2]);
  if (hidden < 1 || hidden > std::numeric_limits<int32_t>::max())
    return node.invalid("'hidden_size' is " + llvm::Twine(hidden) + ", which is out of range");
  llvm::SmallVector<int64_t> initial{directions, batch, hidden};
  if (isBatchFirst)
    std::swap(initial[0], initial[1]);
  if (failed(checkOperand(1, "W", {directions, numGates * hidden, inputs})) ||
      failed(checkOperand(2, "R", {directions, numGates * hidden, hidden})) ||
      failed(checkOperand(3, "B", {directions, 2 * numGates * hidden})) ||
      failed(checkOperand(5, "initial_h", initial)))
    return llvm::failure();
  if (isLstm() &&
      (failed(checkOperand(6, "initial_c", initial)) || failed(checkOperand(7, "P", {directions, 3 * hidden}))))
    return llvm::failure();
  return llvm::success();
}

llvm::LogicalResult Recurrence::readFunctions() {
  // Functions take what they need of the lists of all functions, in order.
  auto getFloats = [&](llvm::StringRef name) {
    const onnx::AttributeProto *attribute = node.getAttr(name);
    return attribute ? llvm::SmallVector<float>(attribute->floats().begin(), attribute->floats().end())
                     : llvm::SmallVector<float>();
  };
  llvm::SmallVector<float> alphas = getFloats("activation_alpha"), betas = getFloats("activation_beta");
  llvm::ArrayRef<float> nextAlpha = alphas, nextBeta = betas;
  auto take = [](llvm::ArrayRef<float> &values, float otherwise) {
    if (values.empty())
      return otherwise;
    float value = values.front();
    values = values.drop_front();
    return value;
  };
  struct Entry {
    llvm::StringRef name;
    std::optional<float> alpha = std::nullopt, beta = std::nullopt;
  };
  static const Entry entries[] = {{"relu"},
                                  {"tanh"},
                                  {"sigmoid"},
                                  {"affine", 1, 0},
                                  {"leakyrelu", 0.01F},
                                  {"thresholdedrelu", 1},
                                  {"scaledtanh", 1, 1},
                                  {"hardsigmoid", 0.2F, 0.5F},
                                  {"elu", 1},
                                  {"softsign"},
                                  {"softplus"}};
  llvm::SmallVector<std::string> names;
  if (const onnx::AttributeProto *attribute = node.getAttr("activations"))
    names.assign(attribute->strings().begin(), attribute->strings().end());
  else
    for (int64_t number = 0; number < directions; ++number)
      names.append(defaults.begin(), defaults.end());
  if (static_cast<int64_t>(names.size()) != directions * static_cast<int64_t>(defaults.size()))
    return node.invalid("'activations' has " + llvm::Twine(names.size()) + " entries, not " +
                        llvm::Twine(directions * defaults.size()));
  for (auto [position, given] : llvm::enumerate(names)) {
    std::string name = llvm::StringRef(given).lower();
    const Entry *entry = llvm::find_if(entries, [&](const Entry &each) { return each.name == name; });
    if (entry == std::end(entries))
      return node.invalid("'activations' has '" + given + "', which is not a function of ONNX");
    if (position % defaults.size() == 0)
      functions.emplace_back();
    functions.back().names.push_back(name);
    functions.back().alphas.push_back(entry->alpha ? take(nextAlpha, *entry->alpha) : 0);
    functions.back().betas.push_back(entry->beta ? take(nextBeta, *entry->beta) : 0);
  }
  if (!(node.getFloat("clip", 0) >= 0))
    return node.invalid("'clip' is below 0");
  return llvm::success();
}

llvm::FailureOr<mlir::Value> Recurrence::readGivenLengths() {
  mlir::Value given = node.getInput(4);
  if (!given)
    return mlir::Value();
  if (OnnxNode::getShape(given) != llvm::ArrayRef<int64_t>(batch) ||
      !OnnxNode::getType(given).getElementType().isInteger())
    return node.invalid("'sequence_lens' is not an integer for each row of the batch");
  if (mlir::ElementsAttr constant = OnnxNode::getConstant(given))
    if (auto values = readInts(constant)) {
      for (int64_t length : *values)
        if (length < 0 || length > steps)
          return node.invalid("'sequence_lens' has " + llvm::Twine(length) + ", but there are " + llvm::Twine(steps) +
                              " steps");
      if (llvm::all_of(*values, [&](int64_t length) { return length == steps; }))
        return mlir::Value();
    }
  return node.cast(given, node.getBuilder().getI64Type());
}

llvm::LogicalResult Recurrence::readLengths() {
  input = node.getInput(0);
  auto given = readGivenLengths();
  if (failed(given))
    return llvm::failure();
  lengths = *given;
  // Rows end where the run does. Other bounded dimensions are what inference makes of them.
  llvm::ArrayRef<mlir::Value> counts = node.getCounts(input);
  unsigned time = isBatchFirst ? 1 : 0;
  if (llvm::count_if(counts, [](mlir::Value count) { return static_cast<bool>(count); }) == 1 && counts[time]) {
    stepCount = counts[time];
    input = node.clearTails(input);
    auto type = mlir::RankedTensorType::get({batch}, node.getBuilder().getI64Type());
    lengths = node.create<MinOp>(lengths ? lengths : node.splat(type, steps), stepCount);
  }
  if (!lengths)
    return llvm::success();
  mlir::Value ends = node.reshape(lengths, {1, batch, 1});
  isBeforeEnd = node.create<LessOp>(node.reshape(node.count(0, steps), {steps, 1, 1}), ends);
  return llvm::success(static_cast<bool>(isBeforeEnd));
}

//===----------------------------------------------------------------------===//
// Directions
//===----------------------------------------------------------------------===//

mlir::Value Recurrence::takeDirection(unsigned index, int64_t number, llvm::ArrayRef<int64_t> shape) {
  mlir::Value operand = node.getInput(index);
  if (!operand)
    return {};
  llvm::SmallVector<int64_t> starts(OnnxNode::getRank(operand), 0), sizes(OnnxNode::getShape(operand));
  llvm::SmallVector<int64_t> strides(starts.size(), 1);
  starts[0] = number;
  sizes[0] = 1;
  return node.widen(node.reshape(node.slice(operand, starts, sizes, strides), shape));
}

mlir::Value Recurrence::takeInitial(unsigned index, int64_t number) {
  mlir::Value operand = node.getInput(index);
  mlir::Type type = OnnxNode::getType(node.widen(node.getInput(0))).getElementType();
  if (!operand)
    return node.splat(mlir::RankedTensorType::get({batch, hidden}, type), 0);
  if (!isBatchFirst)
    return takeDirection(index, number, {batch, hidden});
  mlir::Value part = node.slice(operand, {0, number, 0}, {batch, 1, hidden}, {1, 1, 1});
  return node.widen(node.reshape(part, {batch, hidden}));
}

mlir::Value Recurrence::takePart(mlir::Value vector, int64_t first, int64_t count) {
  return node.slice(vector, first, count, 1);
}

States Recurrence::build(int64_t number) {
  int64_t width = numGates * hidden;
  mlir::Value rows = node.widen(input);
  if (isBatchFirst)
    rows = node.transpose(rows, {1, 0, 2});
  mlir::Value weights = node.transpose(takeDirection(1, number, {width, inputs}), {1, 0});
  mlir::Value sums = multiplyMatrices(node, rows, weights), recurrentBias;
  if (mlir::Value bias = takeDirection(3, number, 2 * width)) {
    mlir::Value ofInput = takePart(bias, 0, width), ofState = takePart(bias, width, width);
    if (isLinearBeforeReset()) {
      // The reset gate multiplies the last part.
      recurrentBias = takePart(ofState, 2 * hidden, hidden);
      mlir::Value gates = node.create<AddOp>(takePart(ofInput, 0, 2 * hidden), takePart(ofState, 0, 2 * hidden));
      mlir::Value last = takePart(ofInput, 2 * hidden, hidden);
      if (!gates || !last)
        return {};
      sums = node.create<AddOp>(sums, node.create<ConcatOp>(mlir::ValueRange{gates, last}, 0));
    } else {
      sums = node.create<AddOp>(sums, node.create<AddOp>(ofInput, ofState));
    }
  } else if (isLinearBeforeReset()) {
    recurrentBias = node.splat(OnnxNode::getType(weights).clone(llvm::ArrayRef<int64_t>(hidden)), 0);
  }
  mlir::Value ofState = takeDirection(2, number, {numGates, hidden, hidden});
  mlir::Value toHidden = ofState ? node.transpose(ofState, {0, 2, 1}) : mlir::Value();
  mlir::Value split = node.reshape(sums, {steps, batch, numGates, hidden});
  if (!split || !toHidden)
    return {};
  return buildOp(number, split, toHidden, recurrentBias);
}

States Recurrence::buildOp(int64_t number, mlir::Value input, mlir::Value weights, mlir::Value recurrentBias) {
  mlir::OpBuilder &builder = node.getBuilder();
  mlir::Location loc = node.getLoc();
  llvm::SmallVector<llvm::StringRef> names(functions[number].names.begin(), functions[number].names.end());
  mlir::ArrayAttr used = builder.getStrArrayAttr(names);
  auto alphas = builder.getDenseF32ArrayAttr(functions[number].alphas);
  auto betas = builder.getDenseF32ArrayAttr(functions[number].betas);
  mlir::FloatAttr clip = builder.getF32FloatAttr(node.getFloat("clip", 0));
  mlir::BoolAttr reverse = builder.getBoolAttr(isReversed(number));
  mlir::Value initial = takeInitial(5, number);
  if (numGates == 1) {
    auto op = RnnOp::create(builder, loc, input, weights, initial, lengths, used, alphas, betas, clip, reverse);
    return {op.getStates(), {}};
  }
  if (numGates == 3) {
    auto op = GruOp::create(builder, loc, input, weights, initial, recurrentBias, lengths, used, alphas, betas, clip,
                            reverse);
    return {op.getStates(), {}};
  }
  mlir::BoolAttr couple = builder.getBoolAttr(node.getInt("input_forget", 0) != 0);
  auto op = LstmOp::create(builder, loc, input, weights, initial, takeInitial(6, number),
                           takeDirection(7, number, {3, hidden}), lengths, used, alphas, betas, clip, couple, reverse);
  return {op.getStates(), op.getCells()};
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

mlir::Value Recurrence::joinSteps(llvm::ArrayRef<mlir::Value> states) {
  llvm::SmallVector<mlir::Value> entries(states);
  if (isBeforeEnd)
    for (mlir::Value &entry : entries)
      entry = node.create<SelectOp>(isBeforeEnd, entry, node.scalarLike(entry, 0));
  // [time, direction, batch, hidden] or [batch, time, direction, hidden].
  mlir::Value joined = node.stack(entries, isBatchFirst ? 2 : 1);
  if (joined && isBatchFirst)
    joined = node.transpose(joined, {1, 0, 2, 3});
  joined = node.cast(joined, OnnxNode::getType(node.getInput(0)).getElementType());
  if (!stepCount)
    return joined;
  Counts counts(4);
  counts[isBatchFirst ? 1 : 0] = stepCount;
  return node.bound(joined, std::move(counts));
}

mlir::Value Recurrence::joinLast(llvm::ArrayRef<mlir::Value> states, llvm::ArrayRef<mlir::Value> initial) {
  llvm::SmallVector<mlir::Value> entries(initial);
  if (steps > 0)
    for (auto [number, entry] : llvm::enumerate(entries)) {
      int64_t last = isReversed(static_cast<int64_t>(number)) ? 0 : steps - 1;
      entry = node.reshape(node.slice(states[number], {last, 0, 0}, {1, batch, hidden}, {1, 1, 1}), {batch, hidden});
    }
  return node.cast(node.stack(entries, isBatchFirst ? 1 : 0), OnnxNode::getType(node.getInput(0)).getElementType());
}

llvm::LogicalResult Recurrence::run() {
  if (failed(readShapes()) || failed(readFunctions()) || failed(readLengths()))
    return llvm::failure();
  llvm::SmallVector<mlir::Value> states, cells, firstStates, firstCells;
  for (int64_t number = 0; number < directions; ++number) {
    States found = build(number);
    if (!found.states)
      return llvm::failure();
    states.push_back(found.states);
    cells.push_back(found.cells);
    firstStates.push_back(takeInitial(5, number));
    if (isLstm())
      firstCells.push_back(takeInitial(6, number));
  }
  if (node.isResultUsed(0) && failed(node.setResult(0, joinSteps(states))))
    return llvm::failure();
  if (node.isResultUsed(1) && failed(node.setResult(1, joinLast(states, firstStates))))
    return llvm::failure();
  return isLstm() && node.isResultUsed(2) ? node.setResult(2, joinLast(cells, firstCells)) : llvm::success();
}

static OperatorImport lstm("LSTM",
                           [](OnnxNode &node) { return Recurrence(node, 4, {"sigmoid", "tanh", "tanh"}).run(); });
static OperatorImport gru("GRU", [](OnnxNode &node) { return Recurrence(node, 3, {"sigmoid", "tanh"}).run(); });
static OperatorImport rnn("RNN", [](OnnxNode &node) { return Recurrence(node, 1, {"tanh"}).run(); });
