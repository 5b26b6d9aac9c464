//===- ImportHeaders.h - What the import precompiles -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As DialectHeaders.h, and ONNX's protocol buffers.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CMAKE_IMPORTHEADERS_H
#define DOVETAIL_CMAKE_IMPORTHEADERS_H

#include "DialectHeaders.h"

#include "onnx/onnx_pb.h"

#endif // DOVETAIL_CMAKE_IMPORTHEADERS_H
