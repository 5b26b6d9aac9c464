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
static llvm::StringMap<ImportEntry> &getImports() {
  static llvm::StringMap<ImportEntry> imports;
  return imports;
}

OperatorImport::OperatorImport(llvm::StringRef opType, ImportFn fn, bool takesSequences) {
  [[maybe_unused]] bool inserted = getImports().try_emplace(opType, ImportEntry{fn, takesSequences}).second;
  assert(inserted && "two imports of one operator");
}

const ImportEntry *dovetail::importer::lookupImport(llvm::StringRef opType) {
  auto it = getImports().find(opType);
  return it == getImports().end() ? nullptr : &it->second;
}
