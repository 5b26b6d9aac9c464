//===- TileConvolution.h - Transposed convolution by tiles ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines transposed convolutions whose windows do not overlap: each input element gives a tile of results.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_TILECONVOLUTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_TILECONVOLUTION_H

#include "../../Memory/Alignment.h"
#include "CallBudget.h"
#include "PostOps.h"

namespace dovetail::runtime {

/// A transposed convolution of one group whose kernel is as wide as its stride. With channels innermost in memory, the
/// results of a row of inputs at a fixed place of the outer spatial dimensions of their tiles are one row of results:
/// a 1 x 1 convolution with more channels, whose rows are then put in their places. oneDNN's own deconvolution is up
/// to 50 times slower where its channels do not fill vectors.
///
/// Use: construct; `stage`; `create` until it suits; `prepare`; `bind`; `pack` once, if weights never change; `run`.
class TileConvolution {
public:
  /// What the convolution works on: memory laid out densely with channels innermost, in logical dimensions.
  struct Operands {
    MemoryView input, output;     ///< Packed, without addresses; the output's elements are all written.
    MemoryView weights;           ///< The part that is used, [C, O, kernel...].
    std::vector<int> dims;        ///< Logical dimension for each of the library's.
    std::vector<int> order;       ///< The library's dimensions, outermost first.
    std::vector<int64_t> strides; ///< Of the convolution: the extents of a tile, for each spatial dimension.
    dnnl::memory::desc inputDesc;
    dnnl::memory::data_type type;
    bool packOnce; ///< Weights never change.
  };

  explicit TileConvolution(Operands operands);

  /// Plans the memory of results before they are put in their places.
  void stage(ScratchPlan &scratch);
  /// Tries to create the library's primitive with what is fused; "sum" is not possible. With `shared` the weights are
  /// those that it packs, in the same form.
  PostOps::Outcome create(const PostOps::Fused &fused, CallBudget &budget, const TileConvolution *shared = nullptr);
  absl::Status prepare(ScratchPlan &scratch);
  /// `packed` has room for `packedBytes`. `bias` is that of one tile element, or null if none was fused.
  absl::Status bind(std::byte *scratch, std::byte *packed, std::byte *input, std::byte *output, std::byte *weights,
                    const std::byte *bias);
  absl::Status pack();
  /// `postOps` has what is fused.
  absl::Status run(const PostOps &postOps);
  /// Of memory that is kept: plain and packed weights, when they never change.
  int64_t packedBytes() const { return operands.packOnce ? weightBytes() : 0; }

  /// The library's name of what computes tiles, once they are created.
  const std::string &implementation() const { return implementationName; }
  /// The call for one tile, with other attributes, and what it writes.
  const NanRecovery::Describe &describeCall() const { return description; }
  const MemoryView &rowsView() const { return rows; }
  const dnnl::memory::desc &rowsFormat() const { return rowsDesc; }
  /// Of each tile's weights.
  const dnnl::memory::desc &packedFormat() const { return packedDesc; }

private:
  int64_t numTiles() const;
  int64_t weightBytes() const { return alignedSize(packedDesc.get_size()) * numTiles() + alignedSize(plain.bytes()); }
  /// Elements of the output between the first of a tile and those with index `tile` in its outer dimensions.
  int64_t tileOffset(int64_t tile) const;
  absl::Status packTiles() const;

  Operands operands;
  int innermost;    ///< The spatial dimension that is innermost in memory,
  int64_t width;    ///< and the extent of a tile there.
  int64_t channels; ///< Of the output.

  dnnl::convolution_forward primitive;
  dnnl::memory::desc rowsDesc, plainDesc, packedDesc, biasDesc, scratchpadDesc;
  std::string implementationName;
  NanRecovery::Describe description;
  bool fusesBias = false;
  dnnl::reorder packer;
  MemoryView plain;    ///< Weights as [outer kernel..., inner kernel, O, C].
  MemoryView rows;     ///< The results of one 1 x 1 convolution.
  MemoryView rowsKept; ///< Where they go, in the output's memory.
  Copier arrange;
  std::vector<Copier> scatter;           ///< For each tile index: rows to their places.
  std::vector<LibraryCall> packs, calls; ///< For each tile index.
  int64_t weightsOffset = 0, rowsOffset = 0, biasOffset = 0, scratchpadOffset = 0;
  std::byte *repeatedBias = nullptr, *rowsData = nullptr;
  const std::byte *bias = nullptr;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_TILECONVOLUTION_H
