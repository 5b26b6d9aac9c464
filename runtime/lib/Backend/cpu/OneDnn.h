//===- OneDnn.h - Use of oneDNN ---------------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how library steps describe memory to oneDNN, create primitives and run them without allocating.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_ONEDNN_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_ONEDNN_H

#include "../common/ScratchPlan.h"
#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/RankMemory.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <dnnl.hpp>
#include <optional>
#include <vector>

namespace dovetail::runtime {

/// The CPU engine of this process.
const dnnl::engine &cpuEngine();

/// Calls `body`, which returns a Status or StatusOr, and turns oneDNN's exceptions into UNIMPLEMENTED.
template <typename Body> auto guardLibrary(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const dnnl::error &error) {
    return absl::UnimplementedError(std::string("oneDNN on this machine has no implementation of this call (") +
                                    error.message +
                                    "); compile the model with --no-libraries, which uses generated kernels instead");
  }
}

/// The type for arithmetic. Errors: UNIMPLEMENTED.
absl::StatusOr<dnnl::memory::data_type> libraryType(ElementType type);

/// The library's types of what a product reads and writes.
struct ProductTypes {
  dnnl::memory::data_type first{}, second{}, result{};

  bool isInteger() const { return result == dnnl::memory::data_type::s32; }
  /// Those of operands that the plan has in `first` and `second`, and a result in `result`: all alike or, where the
  /// library does not saturate sums on the way, integers of 8 bits, of which the second alone has a sign, and i32.
  /// Errors: UNIMPLEMENTED.
  static absl::StatusOr<ProductTypes> find(ElementType first, ElementType second, ElementType result);
};

/// Describes `box` of `view`. `dims` gives the logical dimension for each of oneDNN's (-1 for one of extent 1), `order`
/// oneDNN's dimensions from the outermost to the innermost in memory.
dnnl::memory::desc describe(const MemoryView &view, const layout::Box &box, const std::vector<int> &dims,
                            const std::vector<int> &order, dnnl::memory::data_type type);

/// For tensors of `format`, [N, C, spatial...]: the logical dimension for each of the library's, which are N, C and the
/// spatial ones as they follow each other in memory, and the library's from the outermost to the innermost.
std::pair<std::vector<int>, std::vector<int>> libraryOrder(const MemoryFormat &format);

/// Whether `box` lies in the memory of `view` as if packed in `format`; dimensions of extent 1 do not matter.
bool isDense(const MemoryView &view, const layout::Box &box, const MemoryFormat &format);

/// `format` with the batch outermost, and channels, dimension 1, behind all others or right behind the batch.
MemoryFormat withChannels(const MemoryFormat &format, bool areLast);
/// The box of an operand that a call reads or writes, in a view of its memory.
struct HeldBox {
  const MemoryView &view;
  const layout::Box &box;
};
/// The first of `candidates` in which operands with fewest elements have to be copied.
MemoryFormat chooseFormat(const std::vector<MemoryFormat> &candidates, const std::vector<HeldBox> &operands);

/// Whether a primitive is oneDNN's slow reference implementation.
bool isReference(const char *implementation);

/// A primitive with its arguments, ready to run on one thread. Memories may get their addresses later.
class LibraryCall {
public:
  LibraryCall() = default;
  explicit LibraryCall(dnnl::primitive primitive) : primitive(std::move(primitive)) {}

  explicit operator bool() const { return static_cast<bool>(primitive); }
  void setArgument(int index, const dnnl::memory::desc &desc, void *data);
  /// Another primitive with the same arguments, which `setArgument` may replace.
  LibraryCall like(dnnl::primitive other) const;
  absl::Status run() const;

private:
  dnnl::primitive primitive;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

/// A format of the library as text, which tells it from all others.
std::string formatKey(const dnnl::memory::desc &desc);

/// What becomes of a part of a constant that is described as `source` when it is packed, as text; empty if ranks have
/// different values of it.
std::string packedKey(const RankMemory &context, uint32_t tensor, const layout::Box &box,
                      const dnnl::memory::desc &source, const dnnl::memory::desc &packed);
/// The same where `format` says what is done with it.
std::string packedKey(const RankMemory &context, uint32_t tensor, const layout::Box &box, const std::string &format);

/// Copies a box between two memories of the same element type, by oneDNN where it is faster. Addresses are given by
/// `bind`.
class Copier {
public:
  Copier() = default;
  Copier(const MemoryView &target, const MemoryView &source, const layout::Box &box);
  /// `target` and `source` are the views' `data`.
  void bind(std::byte *target, std::byte *source);
  absl::Status run() const;

private:
  std::vector<BoxPair> pairs;
  std::optional<dnnl::reorder> reorder;
  dnnl::memory::desc targetDesc, sourceDesc;
  int64_t targetOffset = 0, sourceOffset = 0;
  std::byte *target = nullptr, *source = nullptr;
  LibraryCall call;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_ONEDNN_H
