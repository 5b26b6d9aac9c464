//===- Npy.h - NumPy's array format -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TOOLS_NPY_H
#define DOVETAIL_RUNTIME_TOOLS_NPY_H

#include "dovetail/tools/TensorFile.h"

namespace dovetail::tools {

/// Decodes the bytes of a `.npy` file. Errors: OUT_OF_RANGE, with what is wrong.
absl::StatusOr<NamedTensor> decodeNpy(absl::Span<const std::byte> bytes);

/// The bytes of a `.npy` file before the elements.
std::string npyHeader(const NamedTensor &tensor);

} // namespace dovetail::tools

#endif // DOVETAIL_RUNTIME_TOOLS_NPY_H
