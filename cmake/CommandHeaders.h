//===- CommandHeaders.h - What the runtime's commands precompile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As RuntimeHeaders.h, and what command lines and JSON take.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CMAKE_COMMANDHEADERS_H
#define DOVETAIL_CMAKE_COMMANDHEADERS_H

#include "RuntimeHeaders.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#endif // DOVETAIL_CMAKE_COMMANDHEADERS_H
