//===- BoxTasks.h - Copies that the host makes ---------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines copies and combinations in memory of the host, prepared once, so that performing them allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MEMORY_BOXTASKS_H
#define DOVETAIL_RUNTIME_MEMORY_BOXTASKS_H

#include "Combine.h"

#include "dovetail/runtime/BoxCopy.h"
#include "dovetail/runtime/Stream.h"

namespace dovetail::runtime {

class CopyTask : public HostTask {
public:
  explicit CopyTask(const std::vector<StridedBox> &boxes);
  absl::Status perform() override;

private:
  struct Copy {
    std::byte *target;
    const std::byte *source;
    BoxPair pair;
  };
  std::vector<Copy> copies;
};

class CombinationTask : public HostTask {
public:
  explicit CombinationTask(const CombinationDescription &description);
  absl::Status perform() override;

private:
  struct Part {
    std::byte *target;
    const std::byte *source;
    Combination combination;
  };
  std::vector<Part> parts;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORY_BOXTASKS_H
