//===- Symbols.cpp - What compiled kernels may refer to -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines checkSymbols.
//
//===----------------------------------------------------------------------===//

#include "Symbols.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace dovetail;

/// What the runtime finds for kernels, beside the variants of libmvec.
static bool isProvided(StringRef symbol) {
  static const llvm::StringSet<> memory = {"memcpy", "memmove", "memset"};
  // Of libm, with and without the suffix of f32. All are as old as the oldest C library that the runtime runs on.
  static const llvm::StringSet<> mathematics = {
      "acos",  "acosh",     "asin",  "asinh",  "atan",  "atan2", "atanh", "cbrt", "ceil",      "copysign", "cos",
      "cosh",  "erf",       "erfc",  "exp",    "exp10", "exp2",  "expm1", "fabs", "floor",     "fma",      "fmax",
      "fmin",  "fmod",      "hypot", "ldexp",  "log",   "log10", "log1p", "log2", "nearbyint", "pow",      "rint",
      "round", "roundeven", "sin",   "sincos", "sinh",  "sqrt",  "tan",   "tanh", "trunc"};
  if (memory.contains(symbol))
    return true;
  // Of libmvec, which has fewer.
  static const llvm::StringSet<> vectors = {"acos", "acosh", "asin",   "asinh", "atan",  "atan2", "atanh",
                                            "cbrt", "cos",   "cosh",   "erf",   "erfc",  "exp",   "exp10",
                                            "exp2", "expm1", "hypot",  "log",   "log10", "log1p", "log2",
                                            "pow",  "sin",   "sincos", "sinh",  "tan",   "tanh"};
  // Their names: _ZGV, an instruction set, N, the number of lanes, the kinds of parameters, _ and the function's name.
  bool isVector = symbol.consume_front("_ZGV");
  if (isVector)
    symbol = symbol.split('_').second;
  const llvm::StringSet<> &functions = isVector ? vectors : mathematics;
  return functions.contains(symbol) || (symbol.consume_back("f") && functions.contains(symbol));
}

namespace {
struct Function {
  uint64_t section, begin, end;
  StringRef name;
};
} // namespace

/// The undefined symbols that nothing provides, with the functions that refer to them.
static llvm::Expected<llvm::MapVector<StringRef, llvm::SetVector<StringRef>>>
findMissing(const llvm::object::ObjectFile &object) {
  std::vector<Function> functions;
  for (llvm::object::ELFSymbolRef symbol : object.symbols()) {
    auto name = symbol.getName();
    auto section = symbol.getSection();
    auto address = symbol.getAddress();
    if (!name || !section || !address)
      return joinErrors(joinErrors(name.takeError(), section.takeError()), address.takeError());
    if (*section != object.section_end() && symbol.getELFType() == llvm::ELF::STT_FUNC)
      functions.push_back({(*section)->getIndex(), *address, *address + symbol.getSize(), *name});
  }
  llvm::MapVector<StringRef, llvm::SetVector<StringRef>> missing;
  for (const llvm::object::SectionRef &relocations : object.sections()) {
    auto section = relocations.getRelocatedSection();
    if (!section)
      return section.takeError();
    for (const llvm::object::RelocationRef &relocation : relocations.relocations()) {
      auto symbol = relocation.getSymbol();
      if (symbol == object.symbol_end())
        continue;
      auto flags = symbol->getFlags();
      auto name = symbol->getName();
      if (!flags || !name)
        return joinErrors(flags.takeError(), name.takeError());
      if (!(*flags & llvm::object::SymbolRef::SF_Undefined) || name->empty() || isProvided(*name))
        continue;
      auto &users = missing[*name];
      uint64_t offset = relocation.getOffset();
      for (const Function &function : functions)
        if (function.section == (*section)->getIndex() && function.begin <= offset && offset < function.end)
          users.insert(function.name);
    }
  }
  return missing;
}

LogicalResult dovetail::checkSymbols(ModuleOp module, ArrayRef<char> bytes) {
  llvm::MemoryBufferRef buffer(StringRef(bytes.data(), bytes.size()), "kernels");
  auto object = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!object)
    return emitError(module.getLoc(), "cannot read the kernels' object file: ") << toString(object.takeError());
  auto missing = findMissing(**object);
  if (!missing)
    return emitError(module.getLoc(), "cannot read the kernels' object file: ") << toString(missing.takeError());
  for (const auto &[symbol, users] : *missing) {
    auto kernel = users.empty() ? plan::KernelOp() : module.lookupSymbol<plan::KernelOp>(users.front());
    InFlightDiagnostic error = emitError(kernel ? kernel.getLoc() : module.getLoc());
    error << "generated code refers to '" << symbol << "'";
    if (!users.empty())
      error << ", in kernel '" << users.front() << "'";
    if (users.size() > 1)
      error << " and " << users.size() - 1 << " more";
    error << ", which the runtime does not provide; this is a defect of the compiler, which another --cpu may avoid";
  }
  return success(missing->empty());
}
