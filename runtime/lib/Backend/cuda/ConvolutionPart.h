//===- ConvolutionPart.h - A convolution by cuDNN --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines one call of cuDNN of a convolution step: which of the ways to do it is used.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H

#include "ConvolutionForm.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace dovetail::runtime::cuda {

/// A part of a convolution step, by whatever library.
class ConvolutionWork {
public:
  virtual ~ConvolutionWork() = default;
  virtual absl::Status prepare() = 0;
  /// Of `packed`, which is advanced.
  virtual absl::Status bind(std::byte *scratchMemory, std::byte *&packed) = 0;
  virtual absl::Status pack(DeviceStream &stream) = 0;
  virtual absl::Status issue(DeviceStream &stream) = 0;
  /// Adds to the report of all parts.
  virtual void report(LibraryCallReport &report) const = 0;

protected:
  /// Parts differ in their shapes, and then perhaps in their engines.
  static void addImplementation(LibraryCallReport &report, const std::string &own) {
    if (!absl::StrContains(report.implementation, own))
      absl::StrAppend(&report.implementation, report.implementation.empty() ? "" : ", ", own);
  }
};

class ConvolutionPart : public ConvolutionWork {
public:
  ConvolutionPart(LibraryHandles &handles, const RankMemory &memory, const ConvolutionCall &call,
                  ConvolutionChannels channels, LibraryCallOptions options, int64_t workspace)
      : handles(handles), memory(memory), call(call), channels(channels), options(options), workspace{workspace},
        task{handles, memory, call, !options.inPrologue && memory.isConstant(call.weights)} {}
  ConvolutionPart(const ConvolutionPart &) = delete;
  ConvolutionPart &operator=(const ConvolutionPart &) = delete;

  absl::Status prepare() override;
  absl::Status bind(std::byte *scratchMemory, std::byte *&packed) override;
  absl::Status pack(DeviceStream &stream) override;
  absl::Status issue(DeviceStream &stream) override;
  void report(LibraryCallReport &report) const override;

private:
  struct Way {
    ConvolutionForm *form;
    size_t plan;
  };

  void addForms();
  /// Finds ways, and leaves their forms; false if there are none.
  absl::StatusOr<bool> plan();
  /// Runs each way as a whole, and leaves the fastest.
  absl::Status tune(DeviceStream &stream);

  LibraryHandles &handles;
  const RankMemory &memory;
  const ConvolutionCall &call;
  ConvolutionChannels channels;
  LibraryCallOptions options;
  Workspace workspace;
  ConvolutionTask task;
  CandidateLog log;
  std::vector<std::unique_ptr<ConvolutionForm>> forms; ///< None if there is nothing to sum.
  std::vector<Way> ways;                               ///< The first is used.
  std::unique_ptr<PostOpWork> zeros;                   ///< Post-ops on zeros, if there is nothing to sum.
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H
