//===- CallBudget.h - Memory that a library call may take -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how implementations that need more memory than the plan allows are passed over.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_CALLBUDGET_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_CALLBUDGET_H

#include "../../Memory/Alignment.h"
#include "OneDnn.h"

namespace dovetail::runtime {

/// How a call uses its weights.
enum class WeightUse {
  Changing, ///< They are packed, if the library wants that, in scratch memory whenever the call runs.
  Constant, ///< When the session starts, or used where they are.
  Copied,   ///< When the session starts, into memory that is kept, however the library wants them: they are not there
            ///< any more when the call runs.
};

/// What is left of the bounds that the plan sets a call, in bytes: of packed weights, and of scratch memory.
class CallBudget {
public:
  CallBudget(int64_t packed, int64_t scratch) : packed(packed), scratch(scratch) {}

  /// Whether an implementation may need this much. Remembers the first that may not.
  bool allows(int64_t packedNeed, int64_t scratchNeed);
  /// Says how much scratch memory a part of the call takes in the end: parts follow each other in it. It is negative if
  /// the implementation copies less around the call than was planned.
  void takeScratch(int64_t bytes) { used = used ? std::max(*used, bytes) : bytes; }
  /// The most of all parts.
  int64_t scratchUse() const { return used.value_or(0); }
  /// What is left of scratch memory.
  int64_t scratchBytes() const { return scratch; }
  /// Takes away what is kept by a part of the call.
  void keep(int64_t packedBytes) { packed -= alignedSize(packedBytes); }
  /// `status` of a call for which there is no implementation: RESOURCE_EXHAUSTED if one was passed over.
  absl::Status explain(const absl::Status &status) const;

  /// Goes on to the library's next implementation until one is allowed: `need` says of `desc` what it needs, as
  /// `allows` takes it. False if there is none.
  template <typename Desc, typename Need> bool choose(Desc &desc, Need need) {
    do {
      auto [packedNeed, scratchNeed] = need(desc);
      if (allows(packedNeed, scratchNeed))
        return true;
    } while (desc.next_impl());
    return false;
  }
  /// The same for a call with weights, packed as the library wants them in place of `weights`.
  template <typename Desc> bool choose(Desc &desc, const dnnl::memory::desc &weights, WeightUse use) {
    return choose(desc, [&](const Desc &desc) {
      bool packs = use == WeightUse::Copied || desc.weights_desc() != weights;
      int64_t bytes = packs ? alignedSize(desc.weights_desc().get_size()) : 0;
      return needOf(bytes, alignedSize(desc.scratchpad_desc().get_size()), use != WeightUse::Changing);
    });
  }
  /// What a call needs whose packed weights and scratchpad take so many bytes.
  static std::pair<int64_t, int64_t> needOf(int64_t packedBytes, int64_t scratchpad, bool keepsPacked) {
    return keepsPacked ? std::pair(packedBytes, scratchpad) : std::pair(int64_t(0), scratchpad + packedBytes);
  }

private:
  int64_t packed, scratch;
  std::optional<int64_t> used;
  std::optional<std::pair<int64_t, int64_t>> refused;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_CALLBUDGET_H
