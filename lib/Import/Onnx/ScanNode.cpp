//===- ScanNode.cpp - Scan -----------------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the import of Scan, iteration by iteration.
//
//===----------------------------------------------------------------------===//

#include "GraphBody.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

#include <numeric>

using namespace dovetail;
using namespace dovetail::importer;

/// Entry `position` of `value` along `axis`, without that dimension.
static mlir::Value takeEntry(OnnxNode &node, mlir::Value value, int64_t axis, int64_t position) {
  llvm::SmallVector<int64_t> shape(OnnxNode::getShape(value)), starts(shape.size(), 0);
  llvm::SmallVector<int64_t> steps(shape.size(), 1);
  starts[axis] = position;
  shape[axis] = 1;
  mlir::Value entry = node.slice(value, starts, shape, steps);
  shape.erase(shape.begin() + axis);
  return node.reshape(entry, shape);
}

/// An attribute of one entry for each of `count` values; zeros without one.
static llvm::FailureOr<llvm::SmallVector<int64_t>> readEach(OnnxNode &node, llvm::StringRef name, int64_t count) {
  llvm::SmallVector<int64_t> values = node.getInts(name);
  if (values.empty())
    values.assign(count, 0);
  if (static_cast<int64_t>(values.size()) != count)
    return node.invalid("'" + name + "' has " + llvm::Twine(values.size()) + " entries, not " + llvm::Twine(count));
  return values;
}

/// Fails if a value is not a tensor, of at least `minRank` dimensions.
static llvm::LogicalResult requireTensor(OnnxNode &node, unsigned operand, int64_t minRank) {
  if (node.hasInput(operand))
    return node.requireRank(operand, minRank);
  return node.invalid("its operand " + llvm::Twine(operand) + " is not a tensor");
}

llvm::LogicalResult GraphImporter::importScan(OnnxNode &node, Scope &scope) {
  if (node.getOpset() < 9)
    return importBatchedScan(node, scope);
  int64_t numScanned = node.getInt("num_scan_inputs", 0), numCarried = node.getNumInputs() - numScanned;
  Body body(*this, node, scope, "body");
  int64_t numStacked = body.getNumOutputs() - numCarried;
  if (numScanned < 1 || numCarried < 0 || numStacked < 0 ||
      body.getNumInputs() != static_cast<int>(node.getNumInputs()) ||
      node.getProto().output_size() > numCarried + numStacked)
    return node.invalid("its body has " + llvm::Twine(body.getNumInputs()) + " inputs and " +
                        llvm::Twine(body.getNumOutputs()) + " results, which do not fit it and its " +
                        llvm::Twine(numScanned) + " scanned operands");
  auto axes = readEach(node, "scan_input_axes", numScanned);
  auto directions = readEach(node, "scan_input_directions", numScanned);
  auto resultAxes = readEach(node, "scan_output_axes", numStacked);
  auto resultDirections = readEach(node, "scan_output_directions", numStacked);
  if (failed(axes) || failed(directions) || failed(resultAxes) || failed(resultDirections))
    return llvm::failure();
  std::optional<int64_t> length;
  for (int64_t number = 0; number < numScanned; ++number) {
    unsigned operand = numCarried + number;
    if (failed(requireTensor(node, operand, 1)))
      return llvm::failure();
    auto axis = node.normalizeAxis((*axes)[number], OnnxNode::getRank(node.getInput(operand)));
    if (failed(axis))
      return llvm::failure();
    int64_t extent = OnnxNode::getShape(node.getInput(operand))[*axis];
    if (length.value_or(extent) != extent)
      return node.invalid("its scanned operands have " + llvm::Twine(*length) + " and " + llvm::Twine(extent) +
                          " entries");
    (*axes)[number] = *axis;
    length = extent;
  }
  if (failed(body.prepare()))
    return llvm::failure();

  llvm::SmallVector<Binding> carried;
  for (int64_t number = 0; number < numCarried; ++number)
    carried.push_back(node.getOperand(number));
  if (!body.fits(*length)) {
    // What is read of sequences, in each iteration.
    auto getEntry = [&](int number, mlir::Value trip) -> mlir::Value {
      mlir::Value last = node.reshape(node.constantInts(*length - 1), {});
      mlir::Value position = (*directions)[number] ? node.create<SubOp>(last, trip) : trip;
      return node.create<GatherOp>(node.getInput(numCarried + number), position, (*axes)[number]);
    };
    RepeatedLoop loop{carried, static_cast<int>(numStacked)};
    loop.length = length;
    loop.trips = node.constantInts(*length);
    loop.hasCondition = false;
    loop.getEntry = getEntry;
    loop.numEntries = static_cast<int>(numScanned);
    loop.axes = *resultAxes;
    loop.directions = *resultDirections;
    return importRepeated(node, body, loop);
  }
  std::vector<std::vector<mlir::Value>> stacked(numStacked);
  // Of an empty sequence, one iteration says of which types results would be: it reads what is not there.
  bool isEmpty = *length == 0;
  for (int64_t step = 0; step < std::max<int64_t>(*length, 1); ++step) {
    llvm::SmallVector<Binding> arguments(carried);
    for (int64_t number = 0; number < numScanned; ++number) {
      mlir::Value scanned = node.getInput(numCarried + number);
      int64_t axis = (*axes)[number];
      if (isEmpty) {
        llvm::SmallVector<int64_t> shape(OnnxNode::getShape(scanned));
        shape.erase(shape.begin() + axis);
        arguments.push_back(Binding::known(node.splat(OnnxNode::getType(scanned).clone(shape), 0)));
        continue;
      }
      mlir::Value entry = takeEntry(node, scanned, axis, (*directions)[number] ? *length - 1 - step : step);
      if (!entry)
        return llvm::failure();
      arguments.push_back(Binding::known(entry));
    }
    auto results = body.importIteration(step, std::max<int64_t>(*length, 1) - step, arguments);
    if (failed(results))
      return llvm::failure();
    if (isAnyUnknown(*results))
      return setUnknown(node);
    for (int64_t number = 0; number < numStacked; ++number)
      if (failed(
              append(node, stacked[number], (*results)[numCarried + number], body.getOutputName(numCarried + number))))
        return llvm::failure();
    if (!isEmpty)
      carried.assign(results->begin(), results->begin() + numCarried);
  }

  for (int64_t number = 0; number < numCarried; ++number)
    (void)node.setBinding(number, carried[number]);
  for (int64_t number = 0; number < numStacked; ++number) {
    std::vector<mlir::Value> &values = stacked[number];
    auto axis = node.normalizeAxis((*resultAxes)[number], OnnxNode::getRank(values.front()) + 1);
    if (failed(axis))
      return llvm::failure();
    if ((*resultDirections)[number])
      std::reverse(values.begin(), values.end());
    mlir::Value result = isEmpty ? stackNone(node, values.front(), *axis) : node.stack(values, *axis);
    if (failed(node.setResult(numCarried + number, result)))
      return llvm::failure();
  }
  return llvm::success();
}

llvm::LogicalResult GraphImporter::importBatchedScan(OnnxNode &node, Scope &scope) {
  // Operand 0 has the lengths.
  int64_t numScanned = node.getInt("num_scan_inputs", 0), numCarried = node.getNumInputs() - 1 - numScanned;
  Body body(*this, node, scope, "body");
  int64_t numStacked = body.getNumOutputs() - numCarried;
  if (numScanned < 1 || numCarried < 0 || numStacked < 0 || body.getNumInputs() != numCarried + numScanned ||
      node.getProto().output_size() > numCarried + numStacked)
    return node.invalid("its body has " + llvm::Twine(body.getNumInputs()) + " inputs and " +
                        llvm::Twine(body.getNumOutputs()) + " results, which do not fit it and its " +
                        llvm::Twine(numScanned) + " scanned operands");
  auto directions = readEach(node, "directions", numScanned);
  if (failed(directions))
    return llvm::failure();
  std::optional<int64_t> batch, length;
  for (unsigned operand = 1; operand < node.getNumInputs(); ++operand) {
    bool isScanned = operand > numCarried;
    if (failed(requireTensor(node, operand, isScanned ? 2 : 1)))
      return llvm::failure();
    llvm::ArrayRef<int64_t> shape = OnnxNode::getShape(node.getInput(operand));
    if (batch.value_or(shape[0]) != shape[0] || (isScanned && length.value_or(shape[1]) != shape[1]))
      return node.invalid("its operands differ in the extent of the batch, or of the sequence");
    batch = shape[0];
    if (isScanned)
      length = shape[1];
  }
  llvm::SmallVector<int64_t> lengths(*batch, *length);
  if (node.getOperand(0).kind != Binding::Absent) {
    auto given = node.getConstantInts(0, "sequence_lens");
    if (failed(given))
      return llvm::failure();
    if (given->size() != lengths.size() ||
        llvm::any_of(*given, [&](int64_t entry) { return entry < 0 || entry > *length; }))
      return node.invalid("'sequence_lens' is not a length for each entry of the batch");
    lengths = *given;
  }
  if (*batch == 0 || *length == 0)
    return node.unsupported("its batch or its sequences are empty");
  if (failed(body.prepare()))
    return llvm::failure();

  std::vector<std::vector<mlir::Value>> states(numCarried), stacked(numStacked);
  int64_t numLeft = std::accumulate(lengths.begin(), lengths.end(), int64_t(0)), numDone = 0;
  for (int64_t entry = 0; entry < *batch; ++entry) {
    llvm::SmallVector<Binding> carried;
    for (int64_t number = 0; number < numCarried; ++number)
      carried.push_back(Binding::known(takeEntry(node, node.getInput(1 + number), 0, entry)));
    std::vector<std::vector<mlir::Value>> rows(numStacked);
    for (int64_t step = 0; step < lengths[entry]; ++step) {
      llvm::SmallVector<Binding> arguments(carried);
      for (int64_t number = 0; number < numScanned; ++number) {
        mlir::Value rowsOfEntry = takeEntry(node, node.getInput(1 + numCarried + number), 0, entry);
        int64_t position = (*directions)[number] ? lengths[entry] - 1 - step : step;
        mlir::Value value = rowsOfEntry ? takeEntry(node, rowsOfEntry, 0, position) : mlir::Value();
        if (!value)
          return llvm::failure();
        arguments.push_back(Binding::known(value));
      }
      auto results = body.importIteration(numDone, numLeft - numDone, arguments);
      if (failed(results))
        return llvm::failure();
      if (isAnyUnknown(*results))
        return setUnknown(node);
      ++numDone;
      for (int64_t number = 0; number < numStacked; ++number)
        if (failed(
                append(node, rows[number], (*results)[numCarried + number], body.getOutputName(numCarried + number))))
          return llvm::failure();
      carried.assign(results->begin(), results->begin() + numCarried);
    }
    for (int64_t number = 0; number < numCarried; ++number)
      if (failed(append(node, states[number], carried[number], body.getOutputName(number))))
        return llvm::failure();
    for (int64_t number = 0; number < numStacked; ++number) {
      if (rows[number].empty())
        return node.unsupported("a sequence of its batch is empty");
      // Zeros follow where a sequence is shorter.
      while (static_cast<int64_t>(rows[number].size()) < *length)
        rows[number].push_back(node.splat(OnnxNode::getType(rows[number].front()), 0));
      stacked[number].push_back(node.stack(rows[number], 0));
    }
  }
  for (int64_t number = 0; number < numCarried + numStacked; ++number)
    if (failed(
            node.setResult(number, node.stack(number < numCarried ? states[number] : stacked[number - numCarried], 0))))
      return llvm::failure();
  return llvm::success();
}
