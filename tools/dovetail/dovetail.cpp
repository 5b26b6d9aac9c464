//===- dovetail.cpp - The program dovetail -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hands its arguments to libdovetail-compiler.so, so that there is one copy of LLVM in an installation.
//
//===----------------------------------------------------------------------===//

#include "dovetail/compiler.h"

int main(int argc, char **argv) { return dovetail_main(argc, argv); }
