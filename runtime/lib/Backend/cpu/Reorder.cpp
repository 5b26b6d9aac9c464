//===- Reorder.cpp - Steps that change memory formats -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibrarySteps.h"
#include "OneDnn.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class ReorderStep : public StepExecutor {
public:
  ReorderStep(const RankMemory &context, const ReorderCall &call, const layout::Box &box)
      : context(context), call(call), copier(context.memory(call.target), context.memory(call.source), box) {}

  absl::Status bind(std::byte *) override {
    copier.bind(context.memory(call.target).data, context.memory(call.source).data);
    return absl::OkStatus();
  }
  absl::Status run() override { return copier.run(); }

private:
  const RankMemory &context;
  const ReorderCall &call;
  Copier copier;
};

} // namespace

StepExecutorOr dovetail::runtime::createReorder(const RankMemory &context, const ReorderCall &call) {
  layout::Box box = context.box(call.target);
  if (box.empty())
    return nullptr;
  if (absl::Status status = context.checkHeld(call.source, box); !status.ok())
    return status;
  return std::make_unique<ReorderStep>(context, call, box);
}
