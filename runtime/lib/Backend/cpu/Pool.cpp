//===- Pool.cpp - Pooling steps -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibrarySteps.h"
#include "OneDnn.h"

#include <algorithm>
#include <limits>
#include <tuple>

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;
using layout::Box;

namespace {

class PoolStep : public LibraryStep {
public:
  PoolStep(const RankMemory &context, const PoolCall &call, const Box &loops)
      : context(context), call(call), loops(loops) {}

  absl::Status plan() override;
  int64_t stagingBytes() const override { return staging; }
  absl::Status create(CallBudget &budget) override;
  std::string implementation() const override { return implementationName; }
  bool isReference() const override { return runtime::isReference(implementationName.c_str()); }
  absl::Status bind(std::byte *scratch) override;
  absl::Status run() override;

private:
  void chooseLayout();
  /// Makes results that are the least number minus infinity, unless their windows have that number.
  void restoreInfinities() const;
  bool windowHas(const std::vector<int64_t> &result, float value) const;

  const RankMemory &context;
  const PoolCall &call;
  Box loops;
  Box outBox, inBox;
  std::string implementationName;
  MemoryFormat format;                ///< Of both operands, as the library sees them.
  std::vector<int> dims;              ///< Logical dimension for each of the library's.
  std::vector<int> order;             ///< The library's dimensions, outermost first.
  std::vector<layout::DimNeed> needs; ///< For each spatial dimension.
  dnnl::memory::data_type type{};
  ScratchPlan scratchPlan;
  int64_t staging = 0;
  bool stagedIn = false, stagedOut = false;
  MemoryView inView, outView;
  int64_t inOffset = 0, outOffset = 0, scratchpadOffset = 0;
  Copier copyIn, copyOut;
  std::vector<BoxPair> results;  ///< All that may be minus infinity, in the memory of `outView`.
  std::vector<BoxPair> elements; ///< All that windows read, in the memory of `inView`.
  memory::desc inDesc, outDesc, scratchpadDesc;
  dnnl::pooling_v2_forward primitive;
  LibraryCall mainCall;
};

dnnl::algorithm algorithmOf(PoolKind kind) {
  switch (kind) {
  case PoolKind::Max:
    return dnnl::algorithm::pooling_max;
  case PoolKind::AverageIncludePad:
    return dnnl::algorithm::pooling_avg_include_padding;
  case PoolKind::AverageExcludePad:
    return dnnl::algorithm::pooling_avg_exclude_padding;
  }
  return dnnl::algorithm::pooling_max;
}

} // namespace

void PoolStep::chooseLayout() {
  // Channels innermost, or the spatial dimensions: the library is fast with both. Take what needs fewer copies.
  std::vector<MemoryFormat> candidates;
  for (uint32_t tensor : {call.output, call.input})
    for (bool channelsLast : {true, false})
      candidates.push_back(withChannels(context.plan.bufferOf(tensor).format, channelsLast));
  format = chooseFormat(candidates, {{context.memory(call.output), outBox}, {context.memory(call.input), inBox}});
  std::tie(dims, order) = libraryOrder(format);
}

absl::Status PoolStep::plan() {
  absl::StatusOr<memory::data_type> found = libraryType(context.memory(call.output).type);
  if (!found.ok())
    return found.status();
  type = *found;
  const std::vector<int64_t> &input = context.plan.bufferOf(call.input).shape;
  outBox = std::vector<layout::Interval>(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(input.size()));
  inBox = layout::needOf(call.inputAccess, loops);
  for (size_t i = 0; i < call.form.windows.size(); ++i) {
    int64_t reach = call.form.windows[i].reach();
    int dim = 2 + static_cast<int>(i);
    const layout::DimNeed &need = needs.emplace_back(
        layout::needInside(call.inputAccess[dim], loops, {0, input[dim]}, context.box(call.input)[dim]));
    if (need.inside.empty() || need.before >= reach || need.behind >= reach)
      return absl::UnimplementedError("oneDNN cannot pool windows without elements; compile the model with "
                                      "--no-libraries, which uses generated kernels instead");
    inBox[dim] = need.inside;
  }
  if (absl::Status status = context.checkHeld(call.input, inBox); !status.ok())
    return status;
  chooseLayout();
  const MemoryView &source = context.memory(call.input), &target = context.memory(call.output);
  inView = MemoryView::packed(source.type, inBox, format);
  outView = MemoryView::packed(target.type, outBox, format);
  stagedIn = !isDense(source, inBox, format);
  stagedOut = !isDense(target, outBox, format);
  if (stagedIn) {
    inOffset = scratchPlan.add(inView.bytes());
    copyIn = Copier(inView, source, inBox);
  }
  if (stagedOut) {
    outOffset = scratchPlan.add(outView.bytes());
    copyOut = Copier(target, outView, outBox);
  }
  inDesc = describe(inView, inBox, dims, order, type);
  outDesc = describe(outView, outBox, dims, order, type);
  staging = scratchPlan.size();
  if (call.kind == PoolKind::Max && type == memory::data_type::f32) {
    BoxPair::append(outView, outView, outBox, results);
    BoxPair::append(inView, inView, inBox, elements);
  }
  return absl::OkStatus();
}

bool PoolStep::windowHas(const std::vector<int64_t> &result, float value) const {
  auto dims = static_cast<int>(result.size());
  std::vector<int64_t> tap(result.size());
  for (;;) {
    std::vector<layout::Interval> element;
    bool isInside = true;
    for (int dim = 0; dim < dims; ++dim) {
      int64_t at = result[dim];
      if (dim >= 2) {
        const layout::Window &window = call.form.windows[dim - 2];
        at = at * window.stride - window.pad + tap[dim] * window.dilation;
      }
      isInside &= inBox[dim].contains(at);
      element.push_back({at, at + 1});
    }
    if (isInside && *reinterpret_cast<const float *>(inView.address(element)) == value)
      return true;
    int dim = dims - 1;
    while (dim >= 2 && ++tap[dim] == call.form.windows[dim - 2].kernel)
      tap[dim--] = 0;
    if (dim < 2)
      return false;
  }
}

/// Calls `visit(value)`, which is to be inlined, with each element of the boxes in the memory of `view`. Results are
/// combined by or.
template <typename VisitFn>
static bool visitElements(const std::vector<BoxPair> &boxes, const MemoryView &view, VisitFn visit) {
  bool isAny = false;
  for (const BoxPair &pair : boxes)
    pair.forEachRun(view.data, view.data,
                    [&](std::byte *data, const std::byte *, int64_t count, int64_t stride, int64_t) {
                      auto *values = reinterpret_cast<float *>(data);
                      stride /= static_cast<int64_t>(sizeof(float));
                      bool isHere = false;
                      if (stride == 1)
                        for (int64_t i = 0; i < count; ++i)
                          isHere |= visit(values[i]);
                      else
                        for (int64_t i = 0; i < count; ++i)
                          isHere |= visit(values[i * stride]);
                      isAny |= isHere;
                    });
  return isAny;
}

void PoolStep::restoreInfinities() const {
  // The library begins with the least number, which is the result of windows that have nothing above minus infinity.
  constexpr float lowest = std::numeric_limits<float>::lowest();
  auto isLowest = [](float value) { return value == lowest; };
  if (outBox.empty() || !visitElements(results, outView, isLowest))
    return;
  // Nearly always that number is nowhere in the input.
  if (!visitElements(elements, inView, isLowest)) {
    visitElements(results, outView, [](float &value) {
      value = value == lowest ? -std::numeric_limits<float>::infinity() : value;
      return false;
    });
    return;
  }
  int rank = outBox.rank();
  std::vector<int64_t> at;
  for (const layout::Interval &range : outBox)
    at.push_back(range.lo);
  for (;;) {
    std::vector<layout::Interval> element;
    for (int64_t index : at)
      element.push_back({index, index + 1});
    auto *result = reinterpret_cast<float *>(outView.address(element));
    if (*result == lowest && !windowHas(at, lowest))
      *result = -std::numeric_limits<float>::infinity();
    int dim = rank - 1;
    for (; dim >= 0 && ++at[dim] == outBox[dim].hi; --dim)
      at[dim] = outBox[dim].lo;
    if (dim < 0)
      return;
  }
}

absl::Status PoolStep::create(CallBudget &budget) {
  memory::dims strides, kernel, dilations, lo, hi;
  for (size_t i = 2; i < dims.size(); ++i) {
    int dim = dims[i] - 2;
    const layout::Window &window = call.form.windows[dim];
    strides.push_back(window.stride);
    kernel.push_back(window.kernel);
    // The library checks what has no meaning here.
    dilations.push_back(window.kernel == 1 ? 0 : window.dilation - 1);
    lo.push_back(needs[dim].before);
    hi.push_back(needs[dim].behind);
  }
  return guardLibrary([&]() -> absl::Status {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, algorithmOf(call.kind), inDesc, outDesc,
                                        strides, kernel, dilations, lo, hi);
    dnnl::pooling_v2_forward::primitive_desc primitiveDesc(desc, attributes, cpuEngine());
    auto need = [](const auto &each) { return std::pair(int64_t(0), alignedSize(each.scratchpad_desc().get_size())); };
    if (!budget.choose(primitiveDesc, need))
      return absl::ResourceExhaustedError("too little scratch memory");
    primitive = dnnl::pooling_v2_forward(primitiveDesc);
    implementationName = primitiveDesc.impl_info_str();
    scratchpadDesc = primitiveDesc.scratchpad_desc();
    scratchpadOffset = scratchPlan.add(scratchpadDesc.get_size());
    budget.takeScratch(alignedSize(scratchpadDesc.get_size()));
    return absl::OkStatus();
  });
}

absl::Status PoolStep::bind(std::byte *scratch) {
  const MemoryView &source = context.memory(call.input), &target = context.memory(call.output);
  inView.data = stagedIn ? scratch + inOffset : source.address(inBox);
  outView.data = stagedOut ? scratch + outOffset : target.address(outBox);
  if (stagedIn)
    copyIn.bind(inView.data, source.data);
  if (stagedOut)
    copyOut.bind(target.data, outView.data);
  return guardLibrary([&]() -> absl::Status {
    mainCall = LibraryCall(primitive);
    mainCall.setArgument(DNNL_ARG_SRC, inDesc, inView.data);
    mainCall.setArgument(DNNL_ARG_DST, outDesc, outView.data);
    if (scratchpadDesc.get_size() > 0)
      mainCall.setArgument(DNNL_ARG_SCRATCHPAD, scratchpadDesc, scratch + scratchpadOffset);
    return absl::OkStatus();
  });
}

absl::Status PoolStep::run() {
  if (stagedIn)
    if (absl::Status status = copyIn.run(); !status.ok())
      return status;
  if (absl::Status status = mainCall.run(); !status.ok())
    return status;
  restoreInfinities();
  return stagedOut ? copyOut.run() : absl::OkStatus();
}

std::unique_ptr<LibraryStep> dovetail::runtime::makePool(const RankMemory &context, const PoolCall &call,
                                                         const Box &loops) {
  return std::make_unique<PoolStep>(context, call, loops);
}
