//===- Binding.cpp - What a name stands for -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Binding.
//
//===----------------------------------------------------------------------===//

#include "Binding.h"

using namespace dovetail::importer;

void Binding::print(llvm::raw_ostream &os) const {
  switch (kind) {
  case Known:
    os << value.getType();
    return;
  case Unknown:
    os << "unknown";
    return;
  case Absent:
    os << "nothing";
    return;
  case Sequence:
    os << "a sequence of " << elements->size() << (elements->size() == 1 ? " tensor" : " tensors");
    return;
  case Nothing:
    os << "an empty optional";
    return;
  }
}
