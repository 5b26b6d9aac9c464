//===- DovetailOps.td - All operations of the dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_DOVETAILOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_DOVETAILOPS_TD

include "dovetail/Dialect/Dovetail/Ops/AttentionOps.td"
include "dovetail/Dialect/Dovetail/Ops/BoundedOps.td"
include "dovetail/Dialect/Dovetail/Ops/ContractionOps.td"
include "dovetail/Dialect/Dovetail/Ops/ControlOps.td"
include "dovetail/Dialect/Dovetail/IR/CoreOps.td"
include "dovetail/Dialect/Dovetail/Ops/ElementwiseOps.td"
include "dovetail/Dialect/Dovetail/Ops/GenericOps.td"
include "dovetail/Dialect/Dovetail/Ops/IndexingOps.td"
include "dovetail/Dialect/Dovetail/Ops/MatrixOps.td"
include "dovetail/Dialect/Dovetail/Ops/NarrowOps.td"
include "dovetail/Dialect/Dovetail/Ops/NormalizationOps.td"
include "dovetail/Dialect/Dovetail/Ops/RecurrentOps.td"
include "dovetail/Dialect/Dovetail/Ops/SamplingOps.td"
include "dovetail/Dialect/Dovetail/Ops/ScanOps.td"
include "dovetail/Dialect/Dovetail/Ops/SelectionOps.td"
include "dovetail/Dialect/Dovetail/Ops/ShapeOps.td"
include "dovetail/Dialect/Dovetail/Ops/SpectralOps.td"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_DOVETAILOPS_TD
