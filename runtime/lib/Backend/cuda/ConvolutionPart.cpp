//===- ConvolutionPart.cpp - A convolution by cuDNN ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "Tuning.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;
using layout::Interval;

MemoryFormat ConvolutionPart::libraryFormat(int rank) const {
  MemoryFormat format;
  format.order.push_back(0);
  if (!channelsLast)
    format.order.push_back(1);
  for (int dim = 2; dim < rank; ++dim)
    format.order.push_back(dim);
  if (channelsLast)
    format.order.push_back(1);
  return format;
}

/// `packed`: the memory is scratch, which is aligned.
CudnnGraph::Tensor ConvolutionPart::describe(const MemoryView &view, const Box &box, bool packed) const {
  CudnnGraph::Tensor tensor;
  for (int dim = 0; dim < box.rank(); ++dim) {
    // The library has 2 and 3 spatial dimensions; a single one becomes the second of two.
    if (dim == 2 && spatial == 1) {
      tensor.dims.push_back(1);
      tensor.strides.push_back(view.strides[2] * box[2].size());
    }
    tensor.dims.push_back(box[dim].size());
    tensor.strides.push_back(view.strides[dim]);
  }
  tensor.alignment = packed ? 16 : std::min<int64_t>(16, alignmentOf(view, box));
  return tensor;
}

/// Adds one post-op to the graph; false if the library cannot fuse it, or means something else by it.
bool ConvolutionPart::addPostOp(CudnnGraph &graph, const PostOpInfo &op, int input, int output) {
  CudnnGraph::Pointwise pointwise{};
  pointwise.alpha = 1;
  int operandTensor = -1;
  switch (op.kind) {
  case PostOpKind::AddTensor:
  case PostOpKind::MulTensor: {
    pointwise.mode = op.kind == PostOpKind::AddTensor ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_MUL;
    absl::StatusOr<PostOpOperand> operand = operandOf(memory, op, geometry.outBox);
    if (!operand.ok())
      return false;
    bool perChannel = true;
    for (int dim = 0; dim < geometry.outBox.rank(); ++dim)
      perChannel &= operand->box[dim].size() == (dim == 1 ? geometry.outBox[1].size() : 1);
    if (!perChannel && !operand->isFull)
      return false;
    MemoryView view = memory.memory(static_cast<uint32_t>(op.tensor));
    MemoryView shown;
    shown.type = view.type;
    shown.strides = operand->strides;
    if (perChannel) {
      if (operand->strides[1] != 1 && geometry.outBox[1].size() > 1)
        return false;
      shown = MemoryView::packed(view.type, operand->box, libraryFormat(geometry.outBox.rank()));
    }
    CudnnGraph::Tensor tensor = describe(shown, operand->box, /*packed=*/true);
    tensor.alignment = std::min<int64_t>(16, operand->alignment);
    operandTensor = graph.addTensor(tensor);
    ++tensorCount;
    break;
  }
  case PostOpKind::Relu:
    pointwise.mode = CUDNN_POINTWISE_RELU_FWD;
    break;
  case PostOpKind::LeakyRelu:
    pointwise.mode = CUDNN_POINTWISE_RELU_FWD;
    pointwise.slope = op.alpha;
    break;
  case PostOpKind::Clip:
    if (op.alpha != 0 || op.beta < 0)
      return false;
    pointwise.mode = CUDNN_POINTWISE_RELU_FWD;
    pointwise.upper = op.beta;
    break;
  case PostOpKind::Sigmoid:
    pointwise.mode = CUDNN_POINTWISE_SIGMOID_FWD;
    break;
  case PostOpKind::Tanh:
    pointwise.mode = CUDNN_POINTWISE_TANH_FWD;
    break;
  case PostOpKind::Gelu:
    pointwise.mode = CUDNN_POINTWISE_GELU_FWD;
    break;
  case PostOpKind::GeluTanh:
    pointwise.mode = CUDNN_POINTWISE_GELU_APPROX_TANH_FWD;
    break;
  case PostOpKind::Swish:
    pointwise.mode = CUDNN_POINTWISE_SWISH_FWD;
    pointwise.alpha = op.alpha;
    break;
  case PostOpKind::Elu:
    pointwise.mode = CUDNN_POINTWISE_ELU_FWD;
    pointwise.alpha = op.alpha;
    break;
  case PostOpKind::HardSwish:
  case PostOpKind::HardSigmoid:
    return false;
  }
  graph.addPointwise(pointwise, input, operandTensor, output);
  operandTensors.push_back(operandTensor);
  return true;
}

absl::StatusOr<bool> ConvolutionPart::planGraph(size_t fused) {
  absl::StatusOr<cudnnDataType_t> type = cudnnTypeOf(outView.type);
  if (!type.ok())
    return type.status();
  graph = std::make_unique<CudnnGraph>(handles, *type);
  operandTensors.clear();
  const MemoryView &target = geometry.fullResult ? fullView : outView;
  const Box &targetBox = geometry.fullResult ? fullView.box : geometry.outBox;
  CudnnGraph::Tensor out = describe(target, targetBox, geometry.fullResult || stagedOut);
  inTensor = graph->addTensor(describe(inView, inView.box, stagedIn));
  weightsTensor = graph->addTensor(describe(weightsView, geometry.weightsBox, stagedWeights));
  tensorCount = 2;
  CudnnGraph::Convolution convolution;
  convolution.transposed = call.transposed;
  if (spatial == 1)
    for (std::vector<int64_t> *list :
         {&convolution.pre, &convolution.post, &convolution.strides, &convolution.dilations})
      list->push_back(list == &convolution.pre || list == &convolution.post ? 0 : 1);
  for (int i = 0; i < spatial; ++i) {
    bool padded = !geometry.fullResult && (call.transposed || !stagedIn);
    convolution.pre.push_back(padded ? geometry.padLo[i] : 0);
    // What a transposed convolution lacks at the end, less than a stride, needs no padding.
    convolution.post.push_back(padded ? std::max<int64_t>(geometry.padHi[i], 0) : 0);
    convolution.strides.push_back(call.strides[i]);
    convolution.dilations.push_back(call.dilations[i]);
  }
  auto addOutput = [&](bool isLast) {
    CudnnGraph::Tensor tensor = out;
    tensor.isVirtual = !isLast;
    ++tensorCount;
    return graph->addTensor(tensor);
  };
  outTensor = addOutput(fused == 0);
  graph->addConvolution(convolution, inTensor, weightsTensor, outTensor);
  for (size_t i = 0; i < fused; ++i) {
    int input = outTensor;
    outTensor = addOutput(i + 1 == fused);
    if (!addPostOp(*graph, call.postOps[i], input, outTensor))
      return false;
  }
  return graph->choosePlans(memory.plan.math, options.autotune && !options.inPrologue ? tunedWays : 1);
}

absl::StatusOr<bool> ConvolutionPart::plan(bool stageAll) {
  scratch = Scratch();
  const MemoryView &input = memory.memory(call.input), &weights = memory.memory(call.weights),
                   &output = memory.memory(call.output);
  int rank = geometry.outBox.rank();
  auto isLast = [](const MemoryView &view) { return view.box[1].size() == 1 || view.strides[1] == 1; };
  channelsLast = stageAll || (isLast(input) && input.blockDim < 0);
  // Without padding there is none that the library cannot do.
  geometry.fullResult |= stageAll && call.transposed;
  MemoryFormat format = libraryFormat(rank);

  stagedIn = stageAll || input.blockDim >= 0;
  inView = input.part(geometry.inBox);
  if (stagedIn) {
    Box wanted = geometry.inBox;
    // Padding is written out: so the library need not know how.
    for (int i = 0; i < spatial && !call.transposed; ++i)
      wanted[2 + i] = {geometry.inBox[2 + i].lo - geometry.padLo[i], geometry.inBox[2 + i].hi + geometry.padHi[i]};
    inView = MemoryView::packed(input.type, wanted, format);
    inOffset = scratch.add(inView.bytes());
  }
  MemoryView wantedWeights = MemoryView::packed(weights.type, geometry.weightsBox, format);
  weightsView = weights.part(geometry.weightsBox);
  stagedWeights = weights.blockDim >= 0 || weightsView.strides != wantedWeights.strides;
  if (stagedWeights) {
    weightsView = wantedWeights;
    if (!packOnce)
      weightsOffset = scratch.add(weightsView.bytes());
  }
  // The library writes all of its result before its last post-op is done.
  stagedOut = stageAll || geometry.fullResult || output.blockDim >= 0 || isLast(output) != channelsLast ||
              readsResult(memory, call.postOps, call.output);
  outView = output.part(geometry.outBox);
  if (stagedOut) {
    outView = MemoryView::packed(output.type, geometry.outBox, format);
    outOffset = scratch.add(outView.bytes());
  }
  if (geometry.fullResult) {
    Box full = geometry.outBox;
    for (int i = 0; i < spatial; ++i)
      full[2 + i] = transposedReach(
          {memory.plan.bufferOf(call.weights).shape[2 + i], call.strides[i], call.dilations[i], call.pads[i]},
          geometry.inBox[2 + i]);
    fullView = MemoryView::packed(output.type, full, format);
    fullOffset = scratch.add(fullView.bytes());
  }
  // What is cut out of a full result has its post-ops afterwards, as its surroundings need them, too.
  for (size_t fused = geometry.fullResult ? 0 : call.postOps.size();; --fused) {
    absl::StatusOr<bool> found = planGraph(fused);
    if (!found.ok())
      return found;
    if (*found) {
      workspaceOffset = scratch.add(graph->workspaceBytes());
      if (stagedOut || fused < call.postOps.size())
        finish = std::make_unique<PostOpWork>(handles.context, memory, call.postOps, fused, geometry.outBox);
      return true;
    }
    if (fused == 0)
      return false;
  }
}

absl::Status ConvolutionPart::prepare() {
  absl::StatusOr<ConvolutionGeometry> planned = ConvolutionGeometry::plan(memory, call, channels);
  if (!planned.ok())
    return planned.status();
  geometry = *std::move(planned);
  const MemoryView &output = memory.memory(call.output);
  if (output.blockDim >= 0)
    return absl::UnimplementedError(absl::StrCat(memory.name(call.output), " has a blocked format"));
  if (geometry.nothingToSum) {
    outView = output.part(geometry.outBox);
    stagedOut = true;
    finish = std::make_unique<PostOpWork>(handles.context, memory, call.postOps, 0, geometry.outBox);
    return finish->prepare(output.type);
  }
  if (spatial < 1 || spatial > 3)
    return absl::UnimplementedError(
        absl::StrCat("cuDNN has no convolutions of ", spatial,
                     " dimensions; compile the model with --no-libraries, which uses generated kernels instead"));
  if (absl::Status status = handles.cudnn().status(); !status.ok())
    return status;
  for (bool stageAll : {false, true}) {
    absl::StatusOr<bool> found = plan(stageAll);
    if (!found.ok())
      return found.status();
    if (*found)
      return finish ? finish->prepare(output.type) : absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuDNN ", handles.cudnnApi().version, " on ", handles.context->label(), " has no plan for it (input ",
      geometry.inBox.str(), ", weights ", geometry.weightsBox.str(), ", result ", geometry.outBox.str(),
      "); compile the model with --no-libraries, which uses generated kernels instead"));
}

absl::Status ConvolutionPart::bind(std::byte *scratchMemory) {
  scratchMemory = Scratch::align(scratchMemory);
  const MemoryView &input = memory.memory(call.input), &weights = memory.memory(call.weights),
                   &output = memory.memory(call.output);
  if (geometry.nothingToSum)
    return finish->bind(output, MemoryView{});
  auto keep = [](absl::StatusOr<std::unique_ptr<DeviceWork>> work, std::unique_ptr<DeviceWork> &slot) {
    if (work.ok())
      slot = *std::move(work);
    return work.status();
  };
  const std::shared_ptr<Context> &context = handles.context;
  inView.data = stagedIn ? scratchMemory + inOffset : input.address(geometry.inBox);
  if (stagedIn)
    if (absl::Status status = keep(copyBetween(context, inView, input, geometry.inBox), copyIn); !status.ok())
      return status;
  weightsView.data = scratchMemory + weightsOffset;
  if (!stagedWeights)
    weightsView.data = weights.address(geometry.weightsBox);
  if (packedBytes() > 0) {
    absl::StatusOr<std::shared_ptr<std::byte>> allocated = context->allocate(packedBytes());
    if (!allocated.ok())
      return allocated.status();
    packed = *std::move(allocated);
    weightsView.data = packed.get();
  }
  if (stagedWeights)
    if (absl::Status status = keep(copyBetween(context, weightsView, weights, geometry.weightsBox), copyWeights);
        !status.ok())
      return status;
  outView.data = stagedOut ? scratchMemory + outOffset : output.address(geometry.outBox);
  if (geometry.fullResult) {
    fullView.data = scratchMemory + fullOffset;
    if (absl::Status status =
            keep(copyBetween(context, outView, fullView, fullView.box.intersect(geometry.outBox)), cut);
        !status.ok())
      return status;
  }
  if (finish)
    if (absl::Status status = finish->bind(output, outView); !status.ok())
      return status;

  std::vector<void *> addresses(tensorCount, nullptr);
  addresses[inTensor] = inView.data;
  addresses[weightsTensor] = weightsView.data;
  addresses[outTensor] = geometry.fullResult ? fullView.data : outView.data;
  for (size_t i = 0; i < operandTensors.size(); ++i)
    if (operandTensors[i] >= 0) {
      absl::StatusOr<PostOpOperand> operand = operandOf(memory, call.postOps[i], geometry.outBox);
      if (!operand.ok())
        return operand.status();
      addresses[operandTensors[i]] = const_cast<std::byte *>(operand->address);
    }
  return graph->bind(addresses, scratchMemory + workspaceOffset);
}

absl::Status ConvolutionPart::pack(DeviceStream &stream) {
  if (packOnce && copyWeights)
    if (absl::Status status = copyWeights->issue(stream); !status.ok())
      return status;
  return graph && graph->planCount() > 1 ? graph->tune(stream) : absl::OkStatus();
}

absl::Status ConvolutionPart::issue(DeviceStream &stream) {
  const Context &context = *handles.context;
  absl::Status status;
  if (!geometry.nothingToSum) {
    if (copyWeights && !packOnce)
      status = copyWeights->issue(stream);
    if (status.ok() && stagedIn && !(inView.box == geometry.inBox))
      status = issueZeros(context, inView.data, inView.bytes(), stream);
    if (status.ok() && stagedIn)
      status = copyIn->issue(stream);
    if (status.ok())
      status = graph->issue(stream);
    if (status.ok() && geometry.fullResult)
      status = issueZeros(context, outView.data, outView.bytes(), stream);
    if (status.ok() && geometry.fullResult)
      status = cut->issue(stream);
  }
  return status.ok() && finish ? finish->issue(stream) : status;
}
