//===- MeshOps.cpp - Meshes and changes of sharding -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines mesh and reshard.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

layout::Mesh MeshOp::getMesh() {
  std::vector<layout::MeshAxis> axes;
  for (auto [name, size] : llvm::zip_equal(getAxes(), getSizes()))
    axes.push_back({cast<StringAttr>(name).getValue().str(), static_cast<int>(size)});
  return layout::Mesh(axes);
}

ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<Attribute> axes;
  SmallVector<int64_t> sizes;
  auto parseAxis = [&]() -> ParseResult {
    StringAttr axis;
    int64_t size;
    if (parser.parseAttribute(axis) || parser.parseEqual() || parser.parseInteger(size))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), axis.getValue()));
    sizes.push_back(size);
    return success();
  };
  if (parser.parseSymbolName(name, "sym_name", result.attributes) || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return failure();
  Builder &builder = parser.getBuilder();
  result.addAttribute("axes", builder.getArrayAttr(axes));
  result.addAttribute("sizes", builder.getDenseI64ArrayAttr(sizes));
  return parser.parseOptionalAttrDict(result.attributes);
}

void MeshOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " = [";
  llvm::interleaveComma(llvm::zip_equal(getAxes(), getSizes()), printer.getStream(),
                        [&](auto axis) { printer << std::get<0>(axis) << " = " << std::get<1>(axis); });
  printer << "]";
  printer.printOptionalAttrDict((*this)->getAttrs(), {"sym_name", "axes", "sizes"});
}

LogicalResult MeshOp::verify() {
  if (getAxes().size() != getSizes().size())
    return emitOpError("has ") << getAxes().size() << " axis names, but " << getSizes().size() << " sizes";
  for (int64_t size : getSizes())
    if (size < 1 || size > (1 << 24))
      return emitOpError("has an axis of size ") << size << "; sizes lie between 1 and 2^24";
  std::string why;
  if (!getMesh().verify(&why))
    return emitOpError() << why;
  return success();
}

//===----------------------------------------------------------------------===//
// ReshardOp
//===----------------------------------------------------------------------===//

LogicalResult ReshardOp::verify() {
  if (failed(verifyShardings(*this)))
    return failure();
  if (!equalUpToSharding(getOperand().getType(), getResult().getType()))
    return emitOpError("changes shape or element type from ")
           << getOperand().getType() << " to " << getResult().getType();
  ShardingAttr from = getSharding(getOperand());
  ShardingAttr to = getSharding(getResult());
  if (to && to.isPartial()) {
    for (StringAttr axis : to.getPartialAxes())
      if (!from || !llvm::is_contained(from.getPartialAxes(), axis))
        return emitOpError("makes the value partial over mesh axis ") << axis;
    if (from.getPartialKind() != to.getPartialKind())
      return emitOpError("changes the kind of a partial value");
  }
  return success();
}

bool ReshardOp::isReduction() {
  // The result is partial over no other axes.
  ShardingAttr from = getSharding(getOperand()), to = getSharding(getResult());
  return from && from.getPartialAxes().size() != (to ? to.getPartialAxes().size() : 0);
}

OpFoldResult ReshardOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  return {};
}
