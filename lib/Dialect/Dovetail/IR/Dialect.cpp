//===- Dialect.cpp - The dovetail dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect and defines what has no better place.
//
//===----------------------------------------------------------------------===//

#include "AttributeStorage.h"
#include "RegisterOps.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;

#include "dovetail/Dialect/Dovetail/IR/DovetailDialect.cpp.inc"
#include "dovetail/Dialect/Dovetail/IR/DovetailInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dovetail/Dialect/Dovetail/IR/DovetailAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/IR/CoreOps.cpp.inc"

void DovetailDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dovetail/Dialect/Dovetail/IR/DovetailAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dovetail/Dialect/Dovetail/IR/CoreOps.cpp.inc"
      >();
  [this]<size_t... Shards>(std::index_sequence<Shards...>) {
    (detail::registerOps<Shards>(*this), ...);
  }(std::make_index_sequence<DOVETAIL_OP_SHARDS>());
}

Operation *DovetailDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

bool dovetail::equalUpToSharding(TypeRange a, TypeRange b) {
  return llvm::equal(a, b, [](Type l, Type r) {
    auto lhs = dyn_cast<RankedTensorType>(l);
    auto rhs = dyn_cast<RankedTensorType>(r);
    return lhs && rhs && lhs.getShape() == rhs.getShape() && lhs.getElementType() == rhs.getElementType();
  });
}

ShardingAttr dovetail::getSharding(Type type) {
  if (BoundedAttr bounds = getBounds(type))
    return bounds.getSharding();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return dyn_cast_if_present<ShardingAttr>(tensor.getEncoding());
  return {};
}

ShardingAttr dovetail::getSharding(Value value) { return getSharding(value.getType()); }

bool dovetail::isPartial(Type type) {
  ShardingAttr sharding = getSharding(type);
  return sharding && sharding.isPartial();
}

bool dovetail::isPartial(Value value) { return isPartial(value.getType()); }

ShardingAttr dovetail::getBoxSharding(Value value) {
  ShardingAttr sharding = getSharding(value);
  return sharding ? sharding.withoutPartial() : sharding;
}

RankedTensorType dovetail::withSharding(RankedTensorType type, ShardingAttr sharding) {
  Attribute encoding = sharding;
  if (BoundedAttr bounds = getBounds(type))
    encoding = BoundedAttr::get(type.getContext(), bounds.getCounts(), sharding);
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

BoundedAttr dovetail::getBounds(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return dyn_cast_if_present<BoundedAttr>(tensor.getEncoding());
  return {};
}
