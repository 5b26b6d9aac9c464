//===- Avx512.cpp - Kernels for AVX-512 -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the kernels for AVX-512.
//
//===----------------------------------------------------------------------===//

#define DOVETAIL_VECTOR_ELEMENTS 16
#include "Attention.h"
#include "Gathered.h"
#include "Product.h"
#include "Scattered.h"
#include "Winograd.h"

const dovetail::runtime::VectorKernels dovetail::runtime::avx512Kernels = {
    "AVX-512",    elementsOfVector, elementsOfPanel, packWinograd, runWinograd,    packGathered,    runGathered,
    runScattered, packProduct,      runProduct,      runAttention, finishElements, sigmoidElements, areFinite};
