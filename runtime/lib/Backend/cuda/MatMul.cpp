//===- MatMul.cpp - Matrix product steps ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../common/ProductRows.h"
#include "LibraryCalls.h"
#include "MatrixCall.h"
#include "PostOpWork.h"
#include "Staging.h"
#include "Tuning.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;
using layout::Interval;

namespace {

class MatMulStep : public DeviceLibraryCall {
public:
  MatMulStep(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory, const MatMulCall &call,
             LibraryCallOptions options)
      : handles(std::move(handles)), memory(memory), call(call), options(options) {}

  absl::Status prepare();
  int64_t scratchBytes() const override { return scratch.size(); }
  absl::Status bind(std::byte *scratchMemory) override;
  absl::Status pack(DeviceStream &stream) override;
  absl::Status issue(DeviceStream &stream) override;

private:
  /// One of the two factors: the part of it that this rank needs, and where the library finds it.
  struct Factor {
    uint32_t tensor;
    bool transpose;
    Box box;
    bool staged = false;
    MemoryView view;
    int64_t offset = 0;
    std::unique_ptr<DeviceWork> copy;
  };
  /// A batch dimension, with elements between neighbours.
  struct Loop {
    int64_t count, a, b, c, d;
  };

  absl::Status planFactor(Factor &factor, Interval rows, Interval columns);
  void stage(Factor &factor, bool staged);
  MatrixLayout layoutOf(const Factor &factor) const;
  /// Elements between neighbours of a dimension of the result.
  int64_t batchStride(const Factor &factor, int dim) const;
  absl::StatusOr<bool> plan(bool stageAll);
  absl::StatusOr<bool> planCall(size_t fused, MatrixProduct product);
  void planBatch(MatrixProduct &product, const PostOpOperand *added);

  std::shared_ptr<LibraryHandles> handles;
  const RankMemory &memory;
  MatMulCall call;
  LibraryCallOptions options;
  Box outBox;
  Factor a, b;
  bool nothingToSum = false;

  Scratch scratch;
  bool stagedOut = false;
  MemoryView outView;
  int64_t outOffset = 0, workspaceOffset = 0;
  std::byte *workspace = nullptr;
  std::unique_ptr<MatrixCall> matrixCall;
  std::vector<Loop> calls; ///< Batch dimensions that the library does not know.
  std::optional<size_t> bias, added;
  const std::byte *addedData = nullptr;
  std::unique_ptr<PostOpWork> finish;
};

MemoryView packedRowMajor(ElementType type, const Box &box) { return MemoryView::rowMajor(type, box, nullptr); }

} // namespace

absl::Status MatMulStep::planFactor(Factor &factor, Interval rows, Interval columns) {
  const std::vector<int64_t> &shape = memory.plan.bufferOf(factor.tensor).shape;
  int missing = outBox.rank() - static_cast<int>(shape.size());
  std::vector<Interval> intervals;
  for (size_t dim = 0; dim + 2 < shape.size(); ++dim)
    intervals.push_back(shape[dim] == 1 ? Interval{0, 1} : outBox[missing + static_cast<int>(dim)]);
  intervals.push_back(factor.transpose ? columns : rows);
  intervals.push_back(factor.transpose ? rows : columns);
  factor.box = Box(intervals);
  if (!nothingToSum && !memory.box(factor.tensor).contains(factor.box))
    return absl::DataLossError(absl::StrCat("damaged plan: it needs ", factor.box.str(), " of ",
                                            memory.name(factor.tensor), ", but this rank holds ",
                                            memory.box(factor.tensor).str()));
  return absl::OkStatus();
}

void MatMulStep::stage(Factor &factor, bool staged) {
  const MemoryView &view = memory.memory(factor.tensor);
  factor.staged = staged || view.blockDim >= 0;
  factor.view = view.part(factor.box);
  if (factor.staged) {
    factor.view = packedRowMajor(view.type, factor.box);
    factor.offset = scratch.add(factor.view.bytes());
  }
}

MatrixLayout MatMulStep::layoutOf(const Factor &factor) const {
  int last = factor.box.rank() - 1;
  int64_t rowStride =
      &factor == &a ? mergeRows(factor.view, factor.box, call.rowDims)->stride : factor.view.strides[last - 1];
  MatrixLayout layout{rowStride, factor.view.strides[last], 16};
  if (factor.transpose)
    std::swap(layout.rowStride, layout.columnStride);
  if (!factor.staged)
    layout.alignment = std::min<int64_t>(16, alignmentOf(memory.memory(factor.tensor), factor.box));
  return layout;
}

int64_t MatMulStep::batchStride(const Factor &factor, int dim) const {
  int own = dim - (outBox.rank() - factor.box.rank());
  bool repeats = own < 0 || memory.plan.bufferOf(factor.tensor).shape[own] == 1;
  return repeats ? 0 : factor.view.strides[own];
}

/// Makes the batch dimensions one batch of the library, and calls one after another for what is left.
void MatMulStep::planBatch(MatrixProduct &product, const PostOpOperand *addedOperand) {
  std::vector<Loop> loops;
  for (int dim = 0; dim + 1 + call.rowDims < outBox.rank(); ++dim) {
    if (outBox[dim].size() == 1)
      continue;
    Loop loop{outBox[dim].size(), batchStride(a, dim), batchStride(b, dim),
              addedOperand ? addedOperand->strides[dim] : outView.strides[dim], outView.strides[dim]};
    auto follows = [&](int64_t outer, int64_t inner) { return outer == inner * loop.count; };
    if (!loops.empty() && follows(loops.back().a, loop.a) && follows(loops.back().b, loop.b) &&
        follows(loops.back().c, loop.c) && follows(loops.back().d, loop.d)) {
      loop.count *= loops.back().count;
      loops.pop_back();
    }
    loops.push_back(loop);
  }
  int64_t size = elementSize(product.type);
  for (const Loop &loop : loops) {
    product.a.alignment = std::gcd(product.a.alignment, loop.a * size);
    product.b.alignment = std::gcd(product.b.alignment, loop.b * size);
    product.c.alignment = std::gcd(product.c.alignment, loop.c * size);
    product.d.alignment = std::gcd(product.d.alignment, loop.d * size);
  }
  auto longest =
      std::max_element(loops.begin(), loops.end(), [](const Loop &x, const Loop &y) { return x.count < y.count; });
  if (longest != loops.end()) {
    product.batch = longest->count;
    product.batchA = longest->a;
    product.batchB = longest->b;
    product.batchC = longest->c;
    product.batchD = longest->d;
    loops.erase(longest);
  }
  calls = std::move(loops);
}

absl::StatusOr<bool> MatMulStep::planCall(size_t fused, MatrixProduct product) {
  bias.reset();
  added.reset();
  std::optional<PostOpOperand> operand;
  int rank = outBox.rank();
  std::vector<int64_t> extents;
  for (int dim = 0; dim < rank; ++dim)
    extents.push_back(outBox[dim].size());
  for (size_t i = 0; i < fused; ++i) {
    const PostOpInfo &op = call.postOps[i];
    if (product.activation != MatrixProduct::Activation::None)
      return false; // The activation is the last thing that the library does.
    if (op.kind == PostOpKind::Relu) {
      product.activation = MatrixProduct::Activation::Relu;
    } else if (op.kind == PostOpKind::GeluTanh) {
      product.activation = MatrixProduct::Activation::GeluTanh;
    } else if (op.kind == PostOpKind::AddTensor) {
      absl::StatusOr<PostOpOperand> read = operandOf(memory, op, outBox);
      if (!read.ok())
        return read.status();
      bool isVector = true;
      for (int dim = 0; dim + 1 < rank; ++dim)
        isVector &= read->box[dim].size() == 1;
      isVector &= read->box[rank - 1].size() == product.n && (product.n == 1 || read->strides[rank - 1] == 1);
      if (isVector && !bias) {
        bias = i;
        product.hasBias = true;
        product.biasAlignment = std::min<int64_t>(16, read->alignment);
      } else if (auto rows = read->isFull ? mergeRows(extents, read->strides, call.rowDims) : std::nullopt;
                 rows && !added) {
        added = i;
        product.hasC = true;
        product.c = {rows->stride, read->strides[rank - 1], std::min<int64_t>(16, read->alignment)};
        operand = *std::move(read);
      } else {
        return false;
      }
    } else {
      return false;
    }
  }
  planBatch(product, operand ? &*operand : nullptr);
  matrixCall = std::make_unique<MatrixCall>(*handles, product);
  return matrixCall->choose(memory.plan.math, options.autotune && !options.inPrologue ? tunedWays : 1);
}

absl::StatusOr<bool> MatMulStep::plan(bool stageAll) {
  const MemoryView &output = memory.memory(call.output);
  int rank = outBox.rank();
  for (size_t fused = call.postOps.size();; --fused) {
    scratch = Scratch();
    stage(a, stageAll);
    stage(b, stageAll);
    // The library may add what is in its result's memory; others come after it has written there.
    std::vector<PostOpInfo> rest(call.postOps.begin() + fused, call.postOps.end());
    outView = output.part(outBox);
    layout::StridedDim rows = *mergeRows(outView, outBox, call.rowDims);
    MatrixLayout direct{rows.stride, outView.strides[rank - 1], 16};
    stagedOut = stageAll || output.blockDim >= 0 || readsResult(memory, rest, call.output) ||
                !MatrixCall::isResult(direct, rows.extent, outBox[rank - 1].size());
    if (stagedOut) {
      outView = packedRowMajor(output.type, outBox);
      outOffset = scratch.add(outView.bytes());
    }
    MatrixProduct product;
    product.type = output.type;
    product.m = rows.extent;
    product.n = outBox[rank - 1].size();
    product.k = a.box[a.box.rank() - (a.transpose ? 2 : 1)].size();
    product.a = layoutOf(a);
    product.b = layoutOf(b);
    product.d = {mergeRows(outView, outBox, call.rowDims)->stride, outView.strides[rank - 1],
                 stagedOut ? 16 : std::min<int64_t>(16, alignmentOf(output, outBox))};
    product.c = product.d;
    absl::StatusOr<bool> found = planCall(fused, product);
    if (!found.ok())
      return found;
    if (*found) {
      workspaceOffset = scratch.add(matrixCall->workspaceBytes());
      if (stagedOut || fused < call.postOps.size())
        finish = std::make_unique<PostOpWork>(handles->context, memory, call.postOps, fused, outBox);
      return true;
    }
    if (fused == 0)
      return false;
  }
}

absl::Status MatMulStep::prepare() {
  outBox = memory.resultBox(call.loops, call.output);
  int rank = outBox.rank();
  const MemoryView &output = memory.memory(call.output);
  if (output.blockDim >= 0)
    return absl::UnimplementedError(absl::StrCat(memory.name(call.output), " has a blocked format"));
  a.tensor = call.a;
  a.transpose = call.transposeA;
  b.tensor = call.b;
  b.transpose = call.transposeB;
  Interval sum = memory.range(call.loops.back());
  nothingToSum = sum.empty();
  if (absl::Status status = planFactor(a, outBox[rank - 2], sum); !status.ok())
    return status;
  if (absl::Status status = planFactor(b, sum, outBox[rank - 1]); !status.ok())
    return status;
  if (absl::Status status = checkRows(memory, call.output, outBox, call.rowDims); !status.ok())
    return status;
  if (absl::Status status = nothingToSum ? absl::OkStatus() : checkRows(memory, call.a, a.box, call.rowDims);
      !status.ok())
    return status;
  if (nothingToSum) {
    finish = std::make_unique<PostOpWork>(handles->context, memory, call.postOps, 0, outBox);
    return finish->prepare(output.type);
  }
  for (bool stageAll : {false, true}) {
    absl::StatusOr<bool> found = plan(stageAll);
    if (!found.ok())
      return found.status();
    if (*found)
      return finish ? finish->prepare(output.type) : absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("cuBLASLt ", handles->cublasLtApi().version, " on ", handles->context->label(),
                   " has no algorithm for ", elementTypeName(output.type), " matrices of ", outBox.str(),
                   "; compile the model with --no-libraries, which uses generated kernels instead"));
}

absl::Status MatMulStep::bind(std::byte *scratchMemory) {
  scratchMemory = Scratch::align(scratchMemory);
  const MemoryView &output = memory.memory(call.output);
  if (nothingToSum)
    return finish->bind(output, MemoryView{});
  for (Factor *factor : {&a, &b}) {
    const MemoryView &view = memory.memory(factor->tensor);
    factor->view.data = factor->staged ? scratchMemory + factor->offset : view.address(factor->box);
    if (!factor->staged)
      continue;
    absl::StatusOr<std::unique_ptr<DeviceWork>> copy = copyBetween(handles->context, factor->view, view, factor->box);
    if (!copy.ok())
      return copy.status();
    factor->copy = *std::move(copy);
  }
  outView.data = stagedOut ? scratchMemory + outOffset : output.address(outBox);
  workspace = scratchMemory + workspaceOffset;
  if (added) {
    absl::StatusOr<PostOpOperand> operand = operandOf(memory, call.postOps[*added], outBox);
    if (!operand.ok())
      return operand.status();
    addedData = operand->address;
  }
  if (bias) {
    absl::StatusOr<PostOpOperand> operand = operandOf(memory, call.postOps[*bias], outBox);
    if (!operand.ok())
      return operand.status();
    if (absl::Status status = matrixCall->setBias(operand->address); !status.ok())
      return status;
  }
  return finish ? finish->bind(output, outView) : absl::OkStatus();
}

absl::Status MatMulStep::pack(DeviceStream &stream) {
  if (nothingToSum || matrixCall->algorithmCount() == 1)
    return absl::OkStatus();
  return matrixCall->tune(stream, a.view.data, b.view.data, addedData, outView.data, workspace);
}

absl::Status MatMulStep::issue(DeviceStream &stream) {
  if (nothingToSum)
    return finish->issue(stream);
  for (Factor *factor : {&a, &b})
    if (factor->copy)
      if (absl::Status status = factor->copy->issue(stream); !status.ok())
        return status;
  int64_t count = 1, size = elementSize(outView.type);
  for (const Loop &loop : calls)
    count *= loop.count;
  for (int64_t index = 0; index < count; ++index) {
    Loop at{0, 0, 0, 0, 0};
    int64_t rest = index;
    for (auto loop = calls.rbegin(); loop != calls.rend(); ++loop) {
      int64_t position = rest % loop->count;
      rest /= loop->count;
      at.a += position * loop->a;
      at.b += position * loop->b;
      at.c += position * loop->c;
      at.d += position * loop->d;
    }
    if (absl::Status status =
            matrixCall->issue(stream, a.view.data + at.a * size, b.view.data + at.b * size,
                              addedData ? addedData + at.c * size : nullptr, outView.data + at.d * size, workspace);
        !status.ok())
      return status;
  }
  return finish ? finish->issue(stream) : absl::OkStatus();
}

LibraryCallOr dovetail::runtime::cuda::createMatMul(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory,
                                                    const MatMulCall &call, LibraryCallOptions options) {
  if (memory.resultBox(call.loops, call.output).empty())
    return nullptr;
  auto step = std::make_unique<MatMulStep>(std::move(handles), memory, call, options);
  if (absl::Status status = step->prepare(); !status.ok())
    return status;
  return step;
}
