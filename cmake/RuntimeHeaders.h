//===- RuntimeHeaders.h - What the runtime precompiles -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Headers that most files of the runtime include and that take long to parse. Files still include what they use.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CMAKE_RUNTIMEHEADERS_H
#define DOVETAIL_CMAKE_RUNTIMEHEADERS_H

#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/Plan.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#endif // DOVETAIL_CMAKE_RUNTIMEHEADERS_H
