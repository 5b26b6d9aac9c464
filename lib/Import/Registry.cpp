//===- Registry.cpp - Which function imports which operator -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the registry of operator imports.
//
//===----------------------------------------------------------------------===//

#include "Registry.h"

#include "llvm/ADT/StringMap.h"

using namespace dovetail::importer;

/// Filled while static variables are initialised, and only read afterwards.
static llvm::StringMap<ImportFn> &getImports() {
  static llvm::StringMap<ImportFn> imports;
  return imports;
}

OperatorImport::OperatorImport(llvm::StringRef opType, ImportFn fn) {
  [[maybe_unused]] bool inserted = getImports().try_emplace(opType, fn).second;
  assert(inserted && "two imports of one operator");
}

ImportFn dovetail::importer::lookupImport(llvm::StringRef opType) { return getImports().lookup(opType); }
