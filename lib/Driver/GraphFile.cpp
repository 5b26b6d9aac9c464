//===- GraphFile.cpp - Models that are graphs of the dialect --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements importGraph.
//
//===----------------------------------------------------------------------===//

#include "GraphFile.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace dovetail;

bool dovetail::isGraphFile(StringRef path) { return path.ends_with(".mlir"); }

ImportResult dovetail::importGraph(StringRef path, MLIRContext &context) {
  context.loadDialect<DovetailDialect, func::FuncDialect>();
  ImportResult result;
  if (!llvm::sys::fs::exists(path))
    result.error = ImportError::File;
  result.module = parseSourceFile<ModuleOp>(path, &context);
  if (!result.module)
    return result;
  auto main = result.module->lookupSymbol<func::FuncOp>("main");
  if (!main || main.isDeclaration() || llvm::range_size(result.module->getOps()) != 1) {
    mlir::emitError(result.module->getLoc()) << "a graph is a module of one function, @main";
    result.module = {};
    return result;
  }
  auto fail = [&](Operation *at, const Twine &why) {
    mlir::emitError(at->getLoc()) << why;
    result.module = {};
    return std::move(result);
  };
  for (Type type : llvm::concat<const Type>(main.getArgumentTypes(), main.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return fail(main, "a graph has tensors of known shapes, but @main has " + debugString(type));
  }
  for (Operation &op : main.getBody().front())
    if (!isa_and_present<DovetailDialect>(op.getDialect()) && !isa<func::ReturnOp>(op))
      return fail(&op, "a graph has operations of the dialect dovetail, but no " + op.getName().getStringRef());
  constexpr StringLiteral name = "dovetail.name";
  auto areNames = [&](unsigned count, function_ref<Attribute(unsigned)> get) {
    llvm::StringSet<> seen;
    return llvm::all_of(llvm::seq(count), [&](unsigned number) {
      Attribute given = get(number);
      auto text = dyn_cast_or_null<StringAttr>(given);
      return !given || (text && !text.empty() && seen.insert(text.getValue()).second);
    });
  };
  if (!areNames(main.getNumArguments(), [&](unsigned number) { return main.getArgAttr(number, name); }) ||
      !areNames(main.getNumResults(), [&](unsigned number) { return main.getResultAttr(number, name); }))
    return fail(main, "dovetail.name is a text that is not empty, another one for each input and for each output");
  auto getName = [&](StringRef kind, unsigned number) { return StringAttr::get(&context, kind + Twine(number)); };
  for (unsigned number = 0; number < main.getNumArguments(); ++number)
    if (!main.getArgAttr(number, name))
      main.setArgAttr(number, name, getName("input", number));
  for (unsigned number = 0; number < main.getNumResults(); ++number)
    if (!main.getResultAttr(number, name))
      main.setResultAttr(number, name, getName("output", number));
  return result;
}
