//===- ConvolutionChoice.cpp - Implementations of a convolution -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how ConvolutionPart chooses a primitive of the library, or kernels of our own, that keep to their memory.
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"

#include "dovetail/Calls/Gathered.h"
#include "dovetail/Calls/Scattered.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;
using layout::Box;

bool ConvolutionPart::isRounded(const char *implementation, bool isPadded) const {
  // All others take sums of integers through f32, also where there is nothing to scale, and this one does so with some
  // windows that reach beyond the border.
  if (!types.isInteger() || (!isPadded && std::strncmp(implementation, "brg", 3) == 0))
    return false;
  const Box &box = geometry.weightsBox;
  int64_t terms = box[1].size();
  for (int i = 0; i < spatial; ++i)
    terms *= box[dims[2 + i]].size();
  return terms > calls::mostExactTerms;
}

PostOps::Outcome ConvolutionPart::createPrimitive(const PostOps::Fused &fused, CallBudget &budget) {
  memory::dims strides, dilations, lo, hi;
  for (int i = 0; i < spatial; ++i) {
    int dim = dims[2 + i] - 2;
    strides.push_back(call.form.windows[dim].stride);
    dilations.push_back(call.form.windows[dim].dilation - 1);
    bool padded = !geometry.readsPaddingOnly && !geometry.fullResult;
    lo.push_back(padded ? geometry.padLo[dim] : 0);
    hi.push_back(padded ? geometry.padHi[dim] : 0);
  }
  auto isPad = [](memory::dim pad) { return pad != 0; };
  bool isPadded = std::any_of(lo.begin(), lo.end(), isPad) || std::any_of(hi.begin(), hi.end(), isPad);
  memory::desc source = weightsDesc();
  memory::desc anyWeights =
      shared ? shared->packedDesc : memory::desc(source.dims(), types.second, memory::format_tag::any);
  auto kind = dnnl::prop_kind::forward_inference;
  // `make` describes the call with weights in some format, and a bias or none.
  auto keep = [&](auto make, auto described) {
    using Op = decltype(described);
    using PrimitiveDesc = typename Op::primitive_desc;
    // The library refers to it as long as it looks for other implementations.
    typename Op::desc operation = make(anyWeights);
    PrimitiveDesc desc(operation, fused.attributes, cpuEngine());
    // What another part packs takes nothing of the budget.
    auto choose = [&] {
      return shared ? budget.choose(desc, shared->packedDesc, WeightUse::Constant) : budget.choose(desc, source, use);
    };
    bool isFound = choose();
    while (isFound && isRounded(desc.impl_info_str(), isPadded))
      isFound = desc.next_impl() && choose();
    if (!isFound)
      return PostOps::Outcome::Impossible;
    packedDesc = desc.weights_desc();
    scratchpadDesc = desc.scratchpad_desc();
    primitive = Op(desc);
    implementationName = desc.impl_info_str();
    describePrimitive = [make, packed = packedDesc](const dnnl::primitive_attr &attributes) {
      return PrimitiveDesc(make(packed), attributes, cpuEngine());
    };
    return isReference(desc.impl_info_str()) ? PostOps::Outcome::Slow : PostOps::Outcome::Fast;
  };
  bool hasBias = fused.hasBias;
  memory::desc in = inDesc, out = outDesc, bias = fused.biasDesc;
  if (call.form.isTransposed) {
    using Op = dnnl::deconvolution_forward;
    auto algorithm = dnnl::algorithm::deconvolution_direct;
    auto make = [=](const memory::desc &weights) {
      return hasBias ? Op::desc(kind, algorithm, in, weights, bias, out, strides, dilations, lo, hi)
                     : Op::desc(kind, algorithm, in, weights, out, strides, dilations, lo, hi);
    };
    PostOps::Outcome outcome = keep(make, Op());
    // What oneDNN 2.6 applies to results of these itself it does element by element, which takes 2 to 16 times as long
    // as the convolution.
    bool isApplied = fused.hasBias || fused.attributes.get_post_ops().len() > 0;
    return outcome == PostOps::Outcome::Fast && isApplied ? PostOps::Outcome::Slow : outcome;
  }
  using Op = dnnl::convolution_forward;
  auto algorithm = dnnl::algorithm::convolution_direct;
  auto make = [=](const memory::desc &weights) {
    return hasBias ? Op::desc(kind, algorithm, in, weights, bias, out, strides, dilations, lo, hi)
                   : Op::desc(kind, algorithm, in, weights, out, strides, dilations, lo, hi);
  };
  return keep(make, Op());
}

bool ConvolutionPart::isTiled() const {
  if (!call.form.isTransposed || channels.groups != 1 || geometry.nothingToSum || geometry.fullResult)
    return false;
  for (const PostOpInfo &op : call.postOps)
    if (op.readsTensor() && context.plan.tensors[op.tensor].buffer == context.plan.tensors[call.output].buffer)
      return false; // Only one call that writes directly can add what is in its result's memory.
  for (int i = 0; i < spatial; ++i) {
    const layout::Window &window = call.form.windows[i];
    if (window.kernel != window.stride || window.dilation != 1 ||
        geometry.outBox[2 + i] != window.resultOf(geometry.inBox[2 + i]))
      return false;
  }
  return true;
}

absl::Status ConvolutionPart::createTiles(CallBudget &budget) {
  absl::Status status = guardLibrary([&]() -> absl::Status {
    return postOps->prepare(/*biasFirst=*/true, scratchPlan, [&](const PostOps::Fused &fused) {
      return tiles->create(fused, budget, shared ? shared->tiles.get() : nullptr);
    });
  });
  implementationName = tiles->implementation();
  if (!status.ok())
    return status;
  return guardLibrary([&]() -> absl::Status {
    postOps->keepNans(tiles->describeCall(), tiles->rowsView(), tiles->rowsView().box, tiles->rowsFormat());
    return tiles->prepare(scratchPlan);
  });
}

bool ConvolutionPart::hasKernels() const {
  return algorithm != ConvolutionAlgorithm::Library && types.result == memory::data_type::f32 &&
         (channels.groups == 1 || algorithm == ConvolutionAlgorithm::Gathered) && !geometry.nothingToSum;
}

void ConvolutionPart::planKernels() {
  const MemoryView &input = context.memory(call.input);
  stagedIn = !KernelConvolution::takes(input);
  inView = stagedIn ? MemoryView::packed(input.type, geometry.inBox, format) : input.part(geometry.inBox);
  if (stagedIn) {
    inOffset = scratchPlan.add(inView.bytes());
    copyIn = Copier(inView, input, geometry.inBox);
  }
  std::vector<int> spatial(dims.begin() + 2, dims.end());
  KernelConvolution::Operands operands{inView, outView, context.memory(call.weights).part(geometry.weightsBox), spatial,
                                       packOnce};
  // Threads have divided what was planned for the library already.
  ThreadPool *dividing = algorithm == call.algorithm ? threads : nullptr;
  int64_t wholeInputs = call.sumLoop().extent, wholeOutputs = call.loops[1].extent / call.form.groups;
  if (algorithm == ConvolutionAlgorithm::Gathered && calls::isScattered(call.form, wholeInputs, wholeOutputs))
    kernels = std::make_unique<ScatteredConvolution>(std::move(operands), call.form, dividing);
  else if (algorithm == ConvolutionAlgorithm::Gathered)
    kernels = std::make_unique<GatheredConvolution>(std::move(operands), call.form, channels.groups,
                                                    context.plan.bufferOf(call.input).shape, wholeInputs, wholeOutputs,
                                                    dividing);
  else
    kernels = std::make_unique<WinogradConvolution>(std::move(operands), geometry.padLo[spatial[0] - 2],
                                                    geometry.padLo[spatial[1] - 2], threads);
}

absl::Status ConvolutionPart::createKernels(CallBudget &budget) {
  // Less than nothing, where kernels copy less than was planned for the library.
  int64_t scratchUse = scratchPlan.size() - staging;
  kernels->limitScratch(budget.scratchBytes() - scratchUse);
  absl::Status status = guardLibrary([&]() -> absl::Status {
    return postOps->prepare(/*biasFirst=*/true, scratchPlan, [&](const PostOps::Fused &fused) {
      return kernels->create(fused, budget, scratchUse, shared != nullptr);
    });
  });
  if (status.ok()) {
    kernels->prepare(scratchPlan);
    implementationName = kernels->implementation();
  }
  return status;
}

absl::Status ConvolutionPart::planCall() {
  if (hasKernels()) {
    planKernels();
    return absl::OkStatus();
  }
  const Box &wanted = geometry.readsPaddingOnly ? geometry.paddedBox : geometry.inBox;
  const MemoryView &input = context.memory(call.input);
  stagedIn = geometry.readsPaddingOnly || !isDense(input, geometry.inBox, format);
  inView = MemoryView::packed(input.type, wanted, format);
  if (stagedIn) {
    inOffset = scratchPlan.add(inView.bytes());
    copyIn = Copier(inView, input, geometry.inBox);
  }
  inDesc = describe(inView, wanted, dims, order, types.first);
  if (isTiled())
    return guardLibrary([&]() -> absl::Status {
      MemoryView weights = context.memory(call.weights).part(geometry.weightsBox);
      std::vector<int64_t> strides;
      for (const layout::Window &window : call.form.windows)
        strides.push_back(window.stride);
      tiles = std::make_unique<TileConvolution>(
          TileConvolution::Operands{inView, outView, weights, dims, order, strides, inDesc, types.result, packOnce});
      tiles->stage(scratchPlan);
      return absl::OkStatus();
    });

  if (geometry.fullResult) {
    const Box &full = geometry.fullBox;
    fullView = MemoryView::packed(outView.type, full, format);
    fullOffset = scratchPlan.add(fullView.bytes());
    outDesc = describe(fullView, full, dims, order, types.result);
    cut = Copier(outView, fullView, full.intersect(geometry.outBox));
  } else {
    outDesc = describe(outView, geometry.outBox, dims, order, types.result);
  }
  return absl::OkStatus();
}

absl::Status ConvolutionPart::createCall(CallBudget &budget) {
  static const std::vector<PostOpInfo> none;
  absl::Status status = guardLibrary([&]() -> absl::Status {
    auto create = [&](const PostOps::Fused &fused) { return createPrimitive(fused, budget); };
    // What is cut out of a full result has its post-ops afterwards, as its surroundings need them too.
    if (geometry.fullResult) {
      PostOps bare(context, none, call.output, /*direct=*/false, fullView.box, fullView, dims, order, /*channel=*/1,
                   types.result);
      if (absl::Status status = bare.prepare(/*biasFirst=*/true, scratchPlan, create); !status.ok())
        return status;
      return postOps->prepareSeparate(scratchPlan);
    }
    return postOps->prepare(/*biasFirst=*/true, scratchPlan, create);
  });
  if (!status.ok())
    return status;
  return guardLibrary([&]() -> absl::Status {
    postOps->keepNans(describePrimitive);
    memory::desc source = weightsDesc();
    packs = use == WeightUse::Copied || packedDesc != source;
    if (packs) {
      dnnl::reorder::primitive_desc desc(cpuEngine(), source, cpuEngine(), packedDesc);
      packer = dnnl::reorder(desc);
      if (!packOnce)
        weightsOffset = scratchPlan.add(packedDesc.get_size());
    }
    scratchpadOffset = scratchPlan.add(scratchpadDesc.get_size());
    return absl::OkStatus();
  });
}

absl::Status ConvolutionPart::prepare() {
  absl::StatusOr<ProductTypes> found = ProductTypes::find(
      context.memory(call.input).type, context.memory(call.weights).type, context.memory(call.output).type);
  if (!found.ok())
    return found.status();
  types = *found;
  absl::StatusOr<ConvolutionGeometry> planned = ConvolutionGeometry::plan(context, call, channels);
  if (!planned.ok())
    return planned.status();
  geometry = *std::move(planned);
  scratchPlan = ScratchPlan();
  tiles = nullptr;
  kernels = nullptr;
  packs = false;
  // Kernels find out by themselves what each window has.
  if (hasKernels())
    geometry.fullResult = geometry.readsPaddingOnly = false;
  chooseLayout();
  const MemoryView &output = context.memory(call.output);
  // The library is slow to apply an epilogue to parts of a larger memory, and the kernels do it themselves.
  bool takesOutput = isDense(output, geometry.outBox, format) ||
                     (hasKernels() && KernelConvolution::takes(output) && KernelConvolution::takes(call.postOps));
  stagedOut = geometry.nothingToSum || geometry.fullResult || !takesOutput ||
              PostOps::needsStaging(context, call.postOps, call.output);
  outView = hasKernels() && !stagedOut ? output.part(geometry.outBox)
                                       : MemoryView::packed(output.type, geometry.outBox, format);
  if (stagedOut) {
    outOffset = scratchPlan.add(outView.bytes());
    copyOut = Copier(output, outView, geometry.outBox);
  }
  postOps = std::make_unique<PostOps>(context, call.postOps, call.output, /*direct=*/!stagedOut, geometry.outBox,
                                      outView, dims, order, /*channel=*/1, types.result);
  if (absl::Status status = postOps->stageOperands(scratchPlan); !status.ok())
    return status;
  if (absl::Status status = geometry.nothingToSum ? absl::OkStatus() : planCall(); !status.ok())
    return status;
  staging = scratchPlan.size();
  return absl::OkStatus();
}

bool ConvolutionPart::mayGather() const {
  return types.result == memory::data_type::f32 && !geometry.nothingToSum &&
         calls::gatheredPhases(call.form) <= calls::gatheredMostPhases;
}

absl::Status ConvolutionPart::gather(CallBudget &budget) {
  int64_t planned = staging;
  algorithm = ConvolutionAlgorithm::Gathered;
  absl::Status status = prepare();
  // What is copied around the call now is part of what it takes more.
  staging = planned;
  if (!status.ok())
    return status;
  return createPlanned(budget);
}

absl::Status ConvolutionPart::create(CallBudget &budget) {
  bool follows = shared && shared->kernels && !kernels;
  absl::Status status =
      follows ? absl::UnimplementedError("the weights of another part are packed for kernels") : createPlanned(budget);
  bool isPoor = !status.ok() || isReference(implementationName.c_str());
  if (!isPoor || kernels || (shared && !follows) || !mayGather())
    return status;
  absl::Status gathered = gather(budget);
  if (gathered.ok() || follows)
    return gathered;
  if (!status.ok())
    return status;
  algorithm = call.algorithm;
  status = prepare();
  return status.ok() ? createPlanned(budget) : status;
}

absl::Status ConvolutionPart::createPlanned(CallBudget &budget) {
  absl::Status status = geometry.nothingToSum ? postOps->prepareSeparate(scratchPlan)
                        : tiles               ? createTiles(budget)
                        : kernels             ? createKernels(budget)
                                              : createCall(budget);
  // The primitives for what is not fused have needs of their own.
  if (status.ok() && !budget.allows(packedBytes(), scratchPlan.size() - staging))
    return absl::ResourceExhaustedError("too little scratch memory");
  extraScratch = scratchPlan.size() - staging;
  return status;
}
