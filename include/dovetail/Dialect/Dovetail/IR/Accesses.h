//===- Accesses.h - Accesses and definitions as attributes ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what accesses and definitions need to be parameters of attributes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_ACCESSES_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_ACCESSES_H

#include "dovetail/Dialect/Dovetail/Definition/Definition.h"
#include "llvm/ADT/Hashing.h"

namespace dovetail {

/// Where an operand is read: an index for each of its dimensions.
class AccessDims {
public:
  AccessDims() = default;
  explicit AccessDims(llvm::ArrayRef<layout::AccessDim> dims) : dims(dims.begin(), dims.end()) {}

  const std::vector<layout::AccessDim> &get() const { return dims; }
  size_t size() const { return dims.size(); }

  friend bool operator==(const AccessDims &a, const AccessDims &b) { return a.dims == b.dims; }
  friend llvm::hash_code hash_value(const AccessDims &access);

private:
  std::vector<layout::AccessDim> dims;
};

llvm::hash_code hash_value(const Definition &definition);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_ACCESSES_H
