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

CudnnGraph::Tensor ConvolutionPart::describe(const MemoryView &view, const Box &box, int64_t alignment) const {
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
  tensor.alignment = alignment;
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
      shown = MemoryView::packed(view.type, operand->box, staging->format(geometry.outBox.rank()));
    }
    operandTensor = graph.addTensor(describe(shown, operand->box, std::min(vectorAlignment, operand->alignment)));
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
  absl::StatusOr<cudnnDataType_t> type = cudnnTypeOf(staging->output.view.type);
  if (!type.ok())
    return type.status();
  log.fused = fused;
  graph = std::make_unique<CudnnGraph>(handles, *type, options.explain ? &log : nullptr);
  operandTensors.clear();
  inTensor = graph->addTensor(describe(staging->input));
  weightsTensor = graph->addTensor(describe(staging->weights));
  tensorCount = 2;
  CudnnGraph::Convolution convolution;
  convolution.transposed = call.form.isTransposed;
  if (spatial == 1)
    for (std::vector<int64_t> *list :
         {&convolution.pre, &convolution.post, &convolution.strides, &convolution.dilations})
      list->push_back(list == &convolution.pre || list == &convolution.post ? 0 : 1);
  for (int i = 0; i < spatial; ++i) {
    bool padded = !staging->isCut && (call.form.isTransposed || !staging->input.isStaged);
    convolution.pre.push_back(padded ? geometry.padLo[i] : 0);
    // What a transposed convolution lacks at the end, less than a stride, needs no padding.
    convolution.post.push_back(padded ? std::max<int64_t>(geometry.padHi[i], 0) : 0);
    convolution.strides.push_back(call.form.windows[i].stride);
    convolution.dilations.push_back(call.form.windows[i].dilation);
  }
  auto addOutput = [&](bool isLast) {
    CudnnGraph::Tensor tensor = describe(target());
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
  return graph->choosePlans(memory.plan.math, options.autotune && !options.inPrologue ? tunedWays : 1, workspace);
}

void ConvolutionPart::report(LibraryCallReport &report) const {
  report.postOps = static_cast<int64_t>(call.postOps.size());
  if (!graph)
    return;
  addImplementation(report, graph->implementation());
  log.addTo(report);
  report.addStaged(staging->input.isStaged, "input");
  report.addStaged(staging->weights.isStaged, packOnce ? "weights, once" : "weights");
  report.addStaged(staging->output.isStaged, "output");
}

absl::StatusOr<bool> ConvolutionPart::plan(StagingMode mode) {
  log.layout = mode;
  staging.emplace(memory, call, geometry, packOnce, mode);
  // What is cut out of a full result has its post-ops afterwards, as its surroundings need them, too.
  for (size_t fused = staging->isCut ? 0 : call.postOps.size();; --fused) {
    absl::StatusOr<bool> found = planGraph(fused);
    if (!found.ok())
      return found;
    if (*found) {
      workspaceOffset = staging->scratch.add(workspace.most);
      if (staging->output.isStaged || fused < call.postOps.size())
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
    finish = std::make_unique<PostOpWork>(handles.context, memory, call.postOps, 0, geometry.outBox);
    return finish->prepare(output.type);
  }
  if (absl::Status status = handles.cudnn().status(); !status.ok())
    return status;
  for (StagingMode mode : {StagingMode::Direct, StagingMode::Packed}) {
    absl::StatusOr<bool> found = plan(mode);
    if (!found.ok())
      return found.status();
    if (*found)
      return finish ? finish->prepare(output.type) : absl::OkStatus();
  }
  if (workspace.refused)
    return workspace.tooSmall(absl::StrCat("cuDNN ", handles.cudnnApi().version, " on ", handles.context->label()));
  return absl::UnimplementedError(
      absl::StrCat("cuDNN ", handles.cudnnApi().version, " on ", handles.context->label(),
                   " has no plan for this convolution (input ", geometry.inBox.str(), ", weights ",
                   geometry.weightsBox.str(), ", result ", geometry.outBox.str(),
                   "); compile the model with --no-libraries, which uses generated kernels instead"));
}

absl::Status ConvolutionPart::bind(std::byte *scratchMemory, std::byte *&packed) {
  scratchMemory = DeviceScratch::align(scratchMemory);
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
  StagedOperand &in = staging->input, &kernel = staging->weights, &out = staging->output;
  in.view.data = in.isStaged ? scratchMemory + in.offset : input.address(geometry.inBox);
  if (in.isStaged)
    if (absl::Status status = keep(copyBetween(context, in.view, input, geometry.inBox), copyIn); !status.ok())
      return status;
  kernel.view.data = !kernel.isStaged ? weights.address(geometry.weightsBox)
                     : packOnce       ? packed
                                      : scratchMemory + kernel.offset;
  packed += staging->packedBytes;
  if (kernel.isStaged)
    if (absl::Status status = keep(copyBetween(context, kernel.view, weights, geometry.weightsBox), copyWeights);
        !status.ok())
      return status;
  out.view.data = out.isStaged ? scratchMemory + out.offset : output.address(geometry.outBox);
  if (staging->isCut) {
    MemoryView &full = staging->full.view;
    full.data = scratchMemory + staging->full.offset;
    if (absl::Status status = keep(copyBetween(context, out.view, full, full.box.intersect(geometry.outBox)), cut);
        !status.ok())
      return status;
  }
  if (finish)
    if (absl::Status status = finish->bind(output, out.view); !status.ok())
      return status;

  std::vector<void *> addresses(tensorCount, nullptr);
  addresses[inTensor] = in.view.data;
  addresses[weightsTensor] = kernel.view.data;
  addresses[outTensor] = target().view.data;
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
    const MemoryView &in = staging->input.view, &out = staging->output.view;
    if (status.ok() && copyIn && !(in.box == geometry.inBox))
      status = issueZeros(context, in.data, in.bytes(), stream);
    if (status.ok() && copyIn)
      status = copyIn->issue(stream);
    if (status.ok())
      status = graph->issue(stream);
    if (status.ok() && cut)
      status = issueZeros(context, out.data, out.bytes(), stream);
    if (status.ok() && cut)
      status = cut->issue(stream);
  }
  return status.ok() && finish ? finish->issue(stream) : status;
}
