//===- Graph.cpp - Operations of a graph that is lowered -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines group and storage.
//
//===----------------------------------------------------------------------===//

#include "Containment.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

//===----------------------------------------------------------------------===//
// GroupOp
//===----------------------------------------------------------------------===//

ParseResult GroupOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseAssignmentList(arguments, operands))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("by"))) {
    StringAttr library;
    // Without a type of its own, which would take the group's.
    if (parser.parseAttribute(library, NoneType::get(parser.getContext())))
      return failure();
    result.addAttribute(getLibraryAttrName(result.name), library);
  }
  FunctionType type;
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), location, result.operands))
    return failure();
  result.addTypes(type.getResults());
  for (auto [argument, input] : llvm::zip_equal(arguments, type.getInputs()))
    argument.type = input;
  return parser.parseRegion(*result.addRegion(), arguments);
}

void GroupOp::print(OpAsmPrinter &printer) {
  printer << "(";
  llvm::interleaveComma(llvm::zip_equal(getBlock()->getArguments(), getInputs()), printer, [&](auto pair) {
    auto [argument, input] = pair;
    printer << argument << " = " << input;
  });
  printer << ")";
  if (getLibrary())
    printer << " by " << getLibraryAttr();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getLibraryAttrName()});
  printer << " : ";
  printer.printFunctionalType(*this);
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

Operation *GroupOp::getCall() {
  return &*llvm::find_if(*getBlock(), [](Operation &op) { return !isa<ConstantOp>(op); });
}

SmallVector<OpOperand *> GroupOp::getEpilogue() {
  SmallVector<OpOperand *> uses;
  for (Operation *op = getCall(); op != getRoot(); op = uses.back()->getOwner())
    uses.push_back(&*op->getResult(0).use_begin());
  return uses;
}

/// Checks that the operations of a group with a library are a call and its epilogue.
static LogicalResult verifyCall(GroupOp group) {
  Operation *previous = nullptr;
  for (Operation &op : group.getBlock()->without_terminator()) {
    if (isa<ConstantOp>(op))
      continue;
    if (op.getNumResults() != 1)
      return group.emitOpError("calls a library for an operation of ") << op.getNumResults() << " results";
    if (previous) {
      Value value = previous->getResult(0), tensor;
      if (!value.hasOneUse() || value.use_begin()->getOwner() != &op || op.getResult(0).getType() != value.getType() ||
          !getPostOp(*value.use_begin(), tensor))
        return group.emitOpError("has ") << op.getName() << ", which is not a step of an epilogue";
    }
    previous = &op;
  }
  return success();
}

/// Checks that a group may write its result over an operand.
static LogicalResult verifyInPlace(GroupOp group) {
  uint64_t number = *group.getInPlace();
  if (group->getNumResults() != 1 || number >= group.getInputs().size())
    return group.emitOpError("is in place, but has not one result and an operand ") << number;
  if (group.getLibrary()) {
    // What a call reads when, its step says.
    if (group.getInputs()[number].getType() != group.getOutputs().front().getType())
      return group.emitOpError("is in place, but operand ") << number << " is of another type than its result";
    return success();
  }
  if (!group.getInputs()[number].getDefiningOp() ||
      !mayWriteOver(*group.getBlock(), group.getBlock()->getArgument(number)))
    return group.emitOpError("is in place, but operand ") << number << " cannot be written over";
  return success();
}

LogicalResult GroupOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBlock()->getTerminator());
  if (!yield)
    return emitOpError("does not end with plan.yield");
  if (getInputs().getTypes() != TypeRange(getBlock()->getArgumentTypes()))
    return emitOpError("has operands of other types than the arguments of its body");
  Operation *root = yield->getPrevNode();
  if (!root || !isa<DefinitionOpInterface>(root) || root->getResults() != yield.getValues())
    return emitOpError("does not yield the results of its last operation");
  if (yield.getValues().getTypes() != getOutputs().getTypes())
    return emitOpError("has results of other types than it yields");
  for (Operation &op : getBlock()->without_terminator())
    if (!isa<ConstantOp, DefinitionOpInterface>(op))
      return op.emitOpError("cannot be in a plan.group");
  if (getLibrary() && failed(verifyCall(*this)))
    return failure();
  return getInPlace() ? verifyInPlace(*this) : success();
}

//===----------------------------------------------------------------------===//
// StorageOp
//===----------------------------------------------------------------------===//

/// Whether `value` is a constant of which a rank needs no more than the results of reshards.
static bool isReadByReshardsAlone(Value value) {
  return value.getDefiningOp<ConstantOp>() &&
         llvm::all_of(value.getUsers(), [](Operation *user) { return isa<ReshardOp, StorageOp>(user); });
}

LogicalResult StorageOp::verify() {
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape() || getFormat().getRank() != type.getRank())
    return emitOpError("cannot hold ") << type << " in a format of " << getFormat().getRank() << " dimensions";
  if (isPartial(type))
    return emitOpError("is partial; that is a property of the values in a buffer");
  if (getValues().empty())
    return emitOpError("holds no value");
  bool isConstant = getValues().front().getDefiningOp<ConstantOp>() != nullptr;
  if (isConstant != (getKind() == BufferKind::Constant))
    return emitOpError(isConstant ? "holds a constant, but is not constant" : "is constant, but does not hold one");
  for (auto [number, value] : llvm::enumerate(getValues())) {
    if (!equalUpToSharding(value.getType(), type))
      return emitOpError("of ") << type << " cannot hold value " << number << " of type " << value.getType();
    if (FormatAttr format = plan::getFormat(value); format && format != getFormat())
      return emitOpError("of format ") << getFormat() << " cannot hold value " << number << " of format " << format;
    if (llvm::count_if(value.getUses(), [](OpOperand &use) { return isa<StorageOp>(use.getOwner()); }) > 1)
      return emitOpError("holds value ") << number << ", which lies elsewhere, too";
    Operation *producer = value.getDefiningOp();
    if (number > 0 && producer && isa<ConstantOp>(producer))
      return emitOpError("holds a constant that is not its first value");
    bool isPersistent = producer && producer->hasAttr(kPrologueAttrName);
    if (getKind() != BufferKind::Constant && isPersistent != (getKind() == BufferKind::Persistent))
      return emitOpError("holds value ") << number << ", which is " << (isPersistent ? "" : "not ")
                                         << "a result of the prologue";
  }
  return success();
}

LogicalResult StorageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifySharding(*this, getTensorType())))
    return failure();
  ShardingAttr sharding = getSharding(getTensorType());
  if (!sharding)
    return success();
  layout::Mesh mesh = symbols.lookupNearestSymbolFrom<MeshOp>(*this, sharding.getMesh()).getMesh();
  for (Value value : getValues())
    if (!isReadByReshardsAlone(value) &&
        failed(verifyContained(*this, mesh, getTensorType(), cast<RankedTensorType>(value.getType()))))
      return failure();
  return success();
}
