//===- ConvolutionGeometry.h - What a part of a convolution reads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the boxes of a part of a convolution, and the list of a step's parts. Backends of all targets use them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_CONVOLUTIONGEOMETRY_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_CONVOLUTIONGEOMETRY_H

#include "ConvolutionChannels.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <algorithm>
#include <memory>

namespace dovetail::runtime {

/// What is computed for some channels on one rank, and of what.
struct ConvolutionGeometry {
  layout::Box outBox, inBox, weightsBox; ///< Of the tensors.
  layout::Box paddedBox;                 ///< `inBox` with the padding around it; not of transposed ones.
  layout::Box fullBox;                   ///< Of the result of a transposed convolution of `inBox`, without ends.
  /// For each spatial dimension the padding around `inBox` or, of a transposed convolution, what is cut off from the
  /// full result, which may be negative where `outBox` reaches further than that.
  std::vector<int64_t> padLo, padHi;
  bool nothingToSum = false;     ///< No channels, or padding alone: the result is zero before post-ops.
  bool fullResult = false;       ///< A transposed convolution must be computed in full and then cut.
  bool readsPaddingOnly = false; ///< Some windows have nothing but padding.

  /// Errors: DATA_LOSS when the rank does not hold what is needed.
  static absl::StatusOr<ConvolutionGeometry> plan(const RankMemory &memory, const ConvolutionCall &call,
                                                  const ConvolutionChannels &channels);
};

/// The parts of a convolution step, done one after another in the same scratch memory.
template <typename Part> class ConvolutionParts {
public:
  /// `create` makes the part for some channels of `loops`. Errors: those of the parts.
  template <typename Create>
  absl::Status prepare(const ConvolutionCall &call, const layout::Box &loops, Create create) {
    for (const ConvolutionChannels &channels : planConvolutionChannels(call, loops)) {
      parts.push_back(create(channels));
      if (absl::Status status = parts.back()->prepare(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  int64_t scratchBytes() const {
    int64_t bytes = 0;
    for (const auto &part : parts)
      bytes = std::max(bytes, part->scratchBytes());
    return bytes;
  }
  template <typename Body> absl::Status forEach(Body body) const {
    for (const auto &part : parts)
      if (absl::Status status = body(*part); !status.ok())
        return status;
    return absl::OkStatus();
  }

  size_t size() const { return parts.size(); }
  Part &operator[](size_t index) const { return *parts[index]; }

private:
  std::vector<std::unique_ptr<Part>> parts;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_CONVOLUTIONGEOMETRY_H
