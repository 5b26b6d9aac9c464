//===- ConvolutionPart.h - Convolution of whole groups -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines one oneDNN call of a convolution step with all that surrounds it: copies into the layout that the library is
// fast in, padding, packed weights and post-ops.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_CONVOLUTIONPART_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_CONVOLUTIONPART_H

#include "../common/ConvolutionGeometry.h"
#include "GatheredConvolution.h"
#include "PostOps.h"
#include "ScatteredConvolution.h"
#include "TileConvolution.h"
#include "WinogradConvolution.h"

#include <memory>

namespace dovetail::runtime {

class ConvolutionPart {
public:
  ConvolutionPart(const RankMemory &context, const ConvolutionCall &call, ConvolutionChannels channels, WeightUse use,
                  ThreadPool *threads);

  /// Finds out what is copied around the call; `scratchBytes` are for that.
  absl::Status prepare();
  int64_t scratchBytes() const { return staging; }
  /// Chooses the library's implementation.
  absl::Status create(CallBudget &budget);
  bool isSlow() const { return postOps->isSlow() || postOps->isRestSlow(); }
  /// What computes it, once it is created; empty where there is nothing to compute.
  const std::string &implementation() const { return implementationName; }
  /// Whether the weights are those of `other`, with dimensions in the same order, and packed once. Both are prepared.
  bool canShareWeights(const ConvolutionPart &other) const;
  /// Has this part use what `other` packs, which is created and bound before this one, and lives as long.
  void shareWeights(const ConvolutionPart &other) { shared = &other; }
  /// Of memory that is kept, once it is created.
  int64_t packedBytes() const;
  /// Scratch memory of the implementation that `create` chose, besides what `prepare` planned.
  int64_t scratchUse() const { return extraScratch; }
  /// What it is; empty for nothing, or what ranks do not share.
  std::string packedKey() const;
  /// `packed` has room for `packedBytes`.
  absl::Status bind(std::byte *scratch, std::byte *packed);
  absl::Status pack();
  absl::Status run();

private:
  /// Creates what `prepare` has planned.
  absl::Status createPlanned(CallBudget &budget);
  /// Plans and creates kernels of the runtime's own in place of what the library has, where they keep to `budget`.
  absl::Status gather(CallBudget &budget);
  bool mayGather() const;
  void chooseLayout();
  /// Whether each input element that is read gives a tile of results of its own.
  bool isTiled() const;
  /// Whether the runtime's own kernels are to do it, as they can.
  bool hasKernels() const;
  void planKernels();
  absl::Status planCall();
  absl::Status createTiles(CallBudget &budget);
  absl::Status createKernels(CallBudget &budget);
  absl::Status createCall(CallBudget &budget);
  PostOps::Outcome createPrimitive(const PostOps::Fused &fused, CallBudget &budget);
  /// Whether an implementation rounds sums of integers that may come up here, of an input that it pads or not.
  bool isRounded(const char *implementation, bool isPadded) const;
  dnnl::memory::desc weightsDesc() const;
  absl::Status runLibrary();

  const RankMemory &context;
  const ConvolutionCall &call;
  ConvolutionChannels channels;
  WeightUse use;
  bool packOnce; ///< Weights never change: they are packed when the session starts.
  ThreadPool *threads;
  ConvolutionAlgorithm algorithm;
  ProductTypes types;
  int spatial;

  ConvolutionGeometry geometry;
  std::vector<int> dims;  ///< Logical dimension for each of the library's.
  std::vector<int> order; ///< The library's dimensions, outermost first.
  MemoryFormat format;    ///< The same in logical dimensions.

  ScratchPlan scratchPlan;
  int64_t staging = 0, extraScratch = 0;
  MemoryView inView, outView, fullView; ///< What the library sees.
  bool stagedIn = false, stagedOut = false;
  int64_t inOffset = 0, outOffset = 0, fullOffset = 0, weightsOffset = 0, scratchpadOffset = 0;
  Copier copyIn, copyOut, cut;
  std::unique_ptr<PostOps> postOps;

  std::string implementationName;
  /// These do the work in place of `primitive`, if there is one of them.
  std::unique_ptr<TileConvolution> tiles;
  std::unique_ptr<KernelConvolution> kernels;
  dnnl::primitive primitive;
  NanRecovery::Describe describePrimitive; ///< The same with other attributes.
  dnnl::memory::desc inDesc, outDesc, packedDesc, scratchpadDesc;
  bool packs = false;                      ///< The library wants another format of the weights.
  const ConvolutionPart *shared = nullptr; ///< That packs the weights of this one, too.
  std::byte *packedData = nullptr;         ///< Where the weights are packed, once it is bound.
  dnnl::reorder packer;
  LibraryCall packCall, mainCall;
  std::byte *zeroBegin = nullptr; ///< Memory to be zeroed before each run.
  int64_t zeroBytes = 0;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_CONVOLUTIONPART_H
