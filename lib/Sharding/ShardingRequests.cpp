//===- ShardingRequests.cpp - Shardings that users ask for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how requests are read and completed.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Sharding/ShardingRequests.h"

#include "dovetail/Dialect/Dovetail/IR/Feedback.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/Cuts.h"

using namespace mlir;
using namespace dovetail;

FailureOr<ShardingRequest> dovetail::readRequest(ArrayAttr attribute, Value value, MeshOp meshOp, const Twine &name) {
  auto type = cast<RankedTensorType>(value.getType());
  layout::Mesh mesh = meshOp.getMesh();
  Operation *owner = value.getParentBlock()->getParentOp();
  auto error = [&] { return owner->emitError() << name << " cannot be split as requested: "; };
  ShardingRequest request;
  for (Attribute entry : attribute) {
    auto dim = cast<DimShardingAttr>(entry);
    request.push_back(dim);
    for (StringAttr axis : dim.getAxes())
      if (!mesh.axisIndex({axis.data(), axis.size()}))
        return error() << "the mesh has no axis " << axis;
  }
  // Open cuts are checked as if they were chosen.
  ShardingRequest closed = request;
  if (static_cast<int64_t>(request.size()) == type.getRank())
    closed = closeCuts(request, mesh, type.getShape());
  auto sharding = ShardingAttr::get(value.getContext(), FlatSymbolRefAttr::get(meshOp), closed, {}, ReduceKind::Sum);
  if (failed(sharding.verifyEncoding(type.getShape(), type.getElementType(), error)))
    return failure();
  std::string why;
  layout::Sharding wanted = toLayout(sharding, mesh, type.getRank());
  if (!wanted.verify(mesh, type.getShape(), &why))
    return error() << why;
  for (auto [dim, extent] : llvm::zip_equal(wanted.dims, type.getShape()))
    if (!dim.isCuts(extent))
      return error() << "the pieces do not tile the dimension of extent " << extent;
  return request;
}

ShardingRequest dovetail::closeCuts(ArrayRef<DimShardingAttr> request, const layout::Mesh &mesh,
                                    ArrayRef<int64_t> shape) {
  ShardingRequest dims(request);
  for (auto [extent, dim] : llvm::zip_equal(shape, dims))
    if (dim.isSplit() && dim.getPieces().empty())
      dim = DimShardingAttr::getCuts(dim.getAxes(), layout::balancedCuts(extent, getNumParts(mesh, dim.getAxes())));
  return dims;
}

namespace {
/// Reads what is stated about one function.
class RequestReader {
public:
  RequestReader(func::FuncOp function, MeshOp meshOp)
      : function(function), meshOp(meshOp), mesh(meshOp.getMesh()), meshName(FlatSymbolRefAttr::get(meshOp)) {}

  FailureOr<FunctionRequests> read();

private:
  LogicalResult readArguments();
  LogicalResult readOperation(SplitOpInterface op);
  LogicalResult readOutputs();
  LogicalResult readFeedback();
  /// What is asked for `value`: `request`, which may be null, or the sharding in its type.
  FailureOr<ArrayAttr> getStated(Value value, ArrayAttr request, const Twine &name);

  func::FuncOp function;
  MeshOp meshOp;
  layout::Mesh mesh;
  FlatSymbolRefAttr meshName;
  FunctionRequests requests;
};
} // namespace

FailureOr<ArrayAttr> RequestReader::getStated(Value value, ArrayAttr request, const Twine &name) {
  ShardingAttr sharding = getSharding(value);
  if (!sharding)
    return request;
  Operation *owner = value.getParentBlock()->getParentOp();
  auto error = [&] { return owner->emitError() << name << " has a sharding in its type, "; };
  if (request)
    return error() << "and another is requested: state one of them";
  if (sharding.getMesh() != meshName)
    return error() << "over " << sharding.getMesh() << ", but the mesh is " << meshName;
  if (sharding.isPartial())
    return error() << "which is partial: only how it is cut can be stated";
  return ArrayAttr::get(function.getContext(), llvm::to_vector_of<Attribute>(sharding.getDims()));
}

FailureOr<FunctionRequests> RequestReader::read() {
  if (failed(readArguments()))
    return failure();
  for (auto op : function.getBody().front().getOps<SplitOpInterface>())
    if (failed(readOperation(op)))
      return failure();
  if (failed(readOutputs()) || failed(readFeedback()))
    return failure();
  return std::move(requests);
}

LogicalResult RequestReader::readArguments() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    FailureOr<ArrayAttr> stated =
        getStated(argument, function.getArgAttrOfType<ArrayAttr>(index, kShardAttrName), "argument " + Twine(index));
    if (failed(stated))
      return failure();
    ArrayAttr attribute = *stated;
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, argument, meshOp, "argument " + Twine(index));
    if (failed(dims))
      return failure();
    requests.arguments[argument] = *dims;
  }
  return success();
}

LogicalResult RequestReader::readOperation(SplitOpInterface op) {
  std::string name = ("the result of '" + op->getName().getStringRef() + "'").str();
  FailureOr<ArrayAttr> stated = getStated(op->getResult(0), op->getAttrOfType<ArrayAttr>(kShardAttrName), name);
  if (failed(stated))
    return failure();
  ArrayAttr attribute = *stated;
  // Results are split alike.
  for (Value other : llvm::drop_begin(op->getResults()))
    if (getSharding(other) != getSharding(op->getResult(0)))
      return op->emitError() << name << " has a sharding in its type, and another result has another: state one";
  if (LoopShardingsAttr loops = op.getLoopShardings()) {
    if (op->hasAttr(kShardAttrName))
      return op->emitError() << name << " has loop shardings, and a sharding is requested: state one of them";
    if (loops.getMesh() != meshName)
      return op->emitError() << "loops are split over " << loops.getMesh() << ", but the mesh is " << meshName;
    requests.loops[op] = LoopShardings(loops.getLoops());
    return success();
  }
  if (!attribute)
    return success();
  auto dims = readRequest(attribute, op->getResult(0), meshOp, name);
  if (failed(dims))
    return failure();
  op->removeAttr(kShardAttrName);
  requests.results[op->getResult(0)] = *dims;
  return success();
}

LogicalResult RequestReader::readOutputs() {
  for (OpOperand &operand : function.getBody().front().getTerminator()->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    auto attribute = function.getResultAttrOfType<ArrayAttr>(index, kShardAttrName);
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, operand.get(), meshOp, "result " + Twine(index));
    if (failed(dims))
      return failure();
    requests.outputs.push_back({&operand, *dims});
  }
  return success();
}

LogicalResult RequestReader::readFeedback() {
  for (OpOperand &operand : function.getBody().front().getTerminator()->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    auto pair = function.getResultAttrOfType<DenseI64ArrayAttr>(index, kFeedbackAttrName);
    if (!pair)
      continue;
    int64_t number = pair.size() == 2 ? pair[0] : -1;
    if (number < 0 || number >= function.getNumArguments())
      return function.emitError() << "result " << index << " is fed back to no argument: " << pair;
    BlockArgument argument = function.getArgument(number);
    auto type = cast<RankedTensorType>(argument.getType()), given = cast<RankedTensorType>(operand.get().getType());
    if (type.getShape() != given.getShape() || type.getElementType() != given.getElementType())
      return function.emitError() << "result " << index << " is fed back to argument " << number
                                  << ", but their types differ: " << given << " and " << type;
    if (function.getResultAttr(index, kShardAttrName))
      return function.emitError() << "result " << index << " is cut as argument " << number
                                  << " is, to which it is fed back; request no other sharding of it";
    if (llvm::any_of(requests.feedback, [&](const auto &other) { return other.second == argument; }))
      return function.emitError() << "two results are fed back to argument " << number;
    requests.feedback.push_back({&operand, argument});
  }
  return success();
}

FailureOr<FunctionRequests> dovetail::readRequests(func::FuncOp function, MeshOp mesh) {
  return RequestReader(function, mesh).read();
}
