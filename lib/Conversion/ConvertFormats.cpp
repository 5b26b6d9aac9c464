//===- ConvertFormats.cpp - Copy what libraries want in other formats -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives library calls copies of operands that do not lie in memory as the library wants them.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "LibraryPass.h"
#include "dovetail/Conversion/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_CONVERTFORMATS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using plan::FormatAttr;

namespace {

/// Converts what the calls of one function read.
class FormatConverter {
public:
  FormatConverter(const Libraries &libraries, Block &block) : libraries(libraries), regions(findRegions(block)) {}

  LogicalResult convert(plan::GroupOp group);

private:
  const Libraries &libraries;
  /// As `findRegions` gives it.
  DenseMap<Operation *, Operation *> regions;
  /// Copies of values in other formats, which calls of one loop or choice share.
  DenseMap<Operation *, DenseMap<std::pair<Value, Attribute>, Value>> copies;
};

struct ConvertFormats : LibraryPass<dovetail::impl::ConvertFormatsBase<ConvertFormats>> {
  using LibraryPass::LibraryPass;

  LogicalResult run(func::FuncOp function, const Libraries &callable) override {
    FormatConverter converter(callable, function.getBody().front());
    for (auto group : function.getBody().front().getOps<plan::GroupOp>())
      if (group.getLibrary() && failed(converter.convert(group)))
        return failure();
    return success();
  }
};

} // namespace

LogicalResult FormatConverter::convert(plan::GroupOp group) {
  const Library *library = libraries.get(*group.getLibrary());
  if (!library)
    return group.emitOpError("is done by library ") << group.getLibraryAttr() << ", which is not at hand";
  FormatAttr resultFormat = plan::getFormat(group.getOutputs().front());
  Operation *op = group.getCall();
  std::optional<CallShape> call = CallShape::find(op);
  if (!call)
    return op->emitOpError("has no library call");
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (!readsOperand(call->form, number))
      continue;
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument)
      return group.emitOpError("has a call whose operand ") << number << " is not an operand of the group";
    Value source = group.getInputs()[argument.getArgNumber()];
    FormatAttr format = plan::getFormat(source);
    if (!format || !resultFormat)
      return group.emitOpError("reads or gives values without memory formats; dovetail-choose-formats chooses them");
    if (library->readsFormat(*call, number, format, resultFormat))
      continue;
    FormatAttr wanted = library->getReadFormat(*call, number, resultFormat);
    Value &copy = copies[regions.lookup(group)][{source, wanted}];
    if (!copy) {
      OpBuilder builder(group);
      auto conversion = plan::ConvertFormatOp::create(builder, source.getLoc(), source.getType(), source);
      plan::setFormats(conversion, wanted);
      copy = conversion.getResult();
    }
    group->setOperand(argument.getArgNumber(), copy);
  }
  return success();
}
