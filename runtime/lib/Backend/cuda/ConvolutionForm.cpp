//===- ConvolutionForm.cpp - A way to do a convolution by cuDNN ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionForm.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;

/// Whether a tensor has one value for each channel of a result.
static bool isPerChannel(const PostOpOperand &operand, const Box &outBox) {
  bool perChannel = true;
  for (int dim = 0; dim < outBox.rank(); ++dim)
    perChannel &= operand.box[dim].size() == (dim == 1 ? outBox[1].size() : 1);
  return perChannel;
}

/// Whether `fused` post-ops are the addition of a bias, then of a tensor, and perhaps Relu. The chain that libraries
/// have code for begins with the tensor: that of cudnnConvolutionBiasActivationForward.
static bool addsTensorToBias(const ConvolutionTask &task, size_t fused) {
  const std::vector<PostOpInfo> &ops = task.call.postOps;
  const Box &outBox = task.geometry.outBox;
  if (fused < 2 || fused > 3 || ops[0].kind != PostOpKind::AddTensor || ops[1].kind != PostOpKind::AddTensor ||
      (fused == 3 && ops[2].kind != PostOpKind::Relu))
    return false;
  absl::StatusOr<PostOpOperand> bias = operandOf(task.memory, ops[0], outBox),
                                tensor = operandOf(task.memory, ops[1], outBox);
  return bias.ok() && tensor.ok() && isPerChannel(*bias, outBox) && tensor->isFull && !isPerChannel(*tensor, outBox);
}

std::vector<ConvolutionChoice> ConvolutionChoice::all(const ConvolutionTask &task) {
  // With tensor cores, code for any chain is made at run time, and it is fast.
  bool isStrict =
      task.memory.memory(task.call.output).type == ElementType::F32 && task.memory.plan.math == MathMode::F32;
  std::vector<ConvolutionChoice> choices;
  for (StagingMode mode : {StagingMode::Direct, StagingMode::Packed})
    for (size_t fused = task.call.postOps.size() + 1; fused-- > 0;) {
      choices.push_back({mode, fused});
      if (!addsTensorToBias(task, fused))
        continue;
      choices.back().tensorFirst = isStrict;
      choices.push_back({mode, fused, !isStrict});
    }
  return choices;
}

ConvolutionForm::ConvolutionForm(const ConvolutionTask &task, ConvolutionChoice choice, CandidateLog *log)
    : task(task), choice(choice), staging(task.memory, task.call, task.geometry, task.packOnce, choice.mode), log(log) {
}

CudnnGraph::Tensor ConvolutionForm::describe(const MemoryView &view, const Box &box, int64_t alignment) const {
  CudnnGraph::Tensor tensor;
  for (int dim = 0; dim < box.rank(); ++dim) {
    // The library has 2 and 3 spatial dimensions; a single one becomes the second of two.
    if (dim == 2 && task.spatial() == 1) {
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
bool ConvolutionForm::addPostOp(const PostOpInfo &op, int input, int output) {
  const Box &outBox = task.geometry.outBox;
  CudnnGraph::Pointwise pointwise{};
  pointwise.alpha = 1;
  int operandTensor = -1;
  switch (op.kind) {
  case PostOpKind::AddTensor:
  case PostOpKind::MulTensor: {
    pointwise.mode = op.kind == PostOpKind::AddTensor ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_MUL;
    absl::StatusOr<PostOpOperand> operand = operandOf(task.memory, op, outBox);
    if (!operand.ok())
      return false;
    bool perChannel = isPerChannel(*operand, outBox);
    if (!perChannel && !operand->isFull)
      return false;
    const MemoryView &view = task.memory.memory(static_cast<uint32_t>(op.tensor));
    MemoryView shown;
    shown.type = view.type;
    shown.strides = operand->strides;
    // A stride of no importance is that of the result, or the library would see another layout.
    for (int dim = 0; dim < outBox.rank(); ++dim)
      if (outBox[dim].size() == 1)
        shown.strides[dim] = target().view.strides[dim];
    if (perChannel) {
      if (operand->strides[1] != 1 && outBox[1].size() > 1)
        return false;
      shown = MemoryView::packed(view.type, operand->box, staging.format(outBox.rank()));
    }
    operandTensor = graph->addTensor(describe(shown, operand->box, std::min(vectorAlignment, operand->alignment)));
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
  graph->addPointwise(pointwise, input, operandTensor, output);
  operandTensors.push_back(operandTensor);
  return true;
}

bool ConvolutionForm::isLike(const ConvolutionForm &other) const {
  auto isSame = [](const StagedOperand &a, const StagedOperand &b) {
    return a.isStaged == b.isStaged && a.alignment == b.alignment && a.view.box == b.view.box &&
           a.view.strides == b.view.strides;
  };
  return choice.fused == other.choice.fused && choice.tensorFirst == other.choice.tensorFirst &&
         staging.isCut == other.staging.isCut && isSame(staging.input, other.staging.input) &&
         isSame(staging.weights, other.staging.weights) && isSame(staging.output, other.staging.output);
}

absl::Status ConvolutionForm::describe() {
  absl::StatusOr<cudnnDataType_t> type = cudnnTypeOf(staging.output.view.type);
  if (!type.ok())
    return type.status();
  graph = std::make_unique<CudnnGraph>(task.handles, *type, log);
  inTensor = graph->addTensor(describe(staging.input));
  weightsTensor = graph->addTensor(describe(staging.weights));
  const auto &form = task.call.form;
  CudnnGraph::Convolution convolution;
  convolution.transposed = form.isTransposed;
  if (task.spatial() == 1)
    for (std::vector<int64_t> *list :
         {&convolution.pre, &convolution.post, &convolution.strides, &convolution.dilations})
      list->push_back(list == &convolution.pre || list == &convolution.post ? 0 : 1);
  for (int i = 0; i < task.spatial(); ++i) {
    bool padded = !staging.isCut && (form.isTransposed || !staging.input.isStaged);
    convolution.pre.push_back(padded ? task.geometry.padLo[i] : 0);
    // A transposed convolution needs no padding for what it lacks at the end, which is less than a stride.
    convolution.post.push_back(padded ? std::max<int64_t>(task.geometry.padHi[i], 0) : 0);
    convolution.strides.push_back(form.windows[i].stride);
    convolution.dilations.push_back(form.windows[i].dilation);
  }
  auto addOutput = [&](bool isLast) {
    CudnnGraph::Tensor tensor = describe(target());
    tensor.isVirtual = !isLast;
    return graph->addTensor(tensor);
  };
  outTensor = addOutput(choice.fused == 0);
  graph->addConvolution(convolution, inTensor, weightsTensor, outTensor);
  for (size_t i = 0; i < choice.fused && isDescribed; ++i) {
    int input = outTensor;
    outTensor = addOutput(i + 1 == choice.fused);
    isDescribed = addPostOp(postOp(i), input, outTensor);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ConvolutionForm::plan(PlanSource source, size_t count, Workspace &workspace) {
  if (log) {
    log->layout = choice.mode;
    log->fused = choice.fused;
    log->tensorFirst = choice.tensorFirst;
  }
  if (!graph) {
    if (absl::Status status = describe(); !status.ok())
      return status;
    workspaceOffset = staging.scratch.add(workspace.most);
  }
  if (!isDescribed)
    return false;
  return graph->choosePlans(source, task.memory.plan.math, count, workspace);
}

absl::Status ConvolutionForm::prepare() {
  const std::vector<PostOpInfo> &ops = task.call.postOps;
  if (!staging.output.isStaged && choice.fused == ops.size())
    return absl::OkStatus();
  finish = std::make_unique<PostOpWork>(task.handles.context, task.memory, ops, choice.fused, task.geometry.outBox);
  return finish->prepare(task.memory.memory(task.call.output).type);
}

absl::Status ConvolutionForm::bind(std::byte *scratchMemory, std::byte *packed) {
  const RankMemory &memory = task.memory;
  const ConvolutionGeometry &geometry = task.geometry;
  const MemoryView &input = memory.memory(task.call.input), &weights = memory.memory(task.call.weights),
                   &output = memory.memory(task.call.output);
  auto keep = [](absl::StatusOr<std::unique_ptr<DeviceWork>> work, std::unique_ptr<DeviceWork> &slot) {
    if (work.ok())
      slot = *std::move(work);
    return work.status();
  };
  const std::shared_ptr<Context> &context = task.handles.context;
  StagedOperand &in = staging.input, &kernel = staging.weights, &out = staging.output;
  in.view.data = in.isStaged ? scratchMemory + in.offset : input.address(geometry.inBox);
  if (in.isStaged)
    if (absl::Status status = keep(copyAmongZeros(context, in.view, input, geometry.inBox, padding), copyIn);
        !status.ok())
      return status;
  kernel.view.data = !kernel.isStaged ? weights.address(geometry.weightsBox)
                     : task.packOnce  ? packed
                                      : scratchMemory + kernel.offset;
  if (kernel.isStaged)
    if (absl::Status status = keep(copyBetween(context, kernel.view, weights, geometry.weightsBox), copyWeights);
        !status.ok())
      return status;
  out.view.data = out.isStaged ? scratchMemory + out.offset : output.address(geometry.outBox);
  if (staging.isCut) {
    MemoryView &full = staging.full.view;
    full.data = scratchMemory + staging.full.offset;
    Box part = full.box.intersect(geometry.outBox);
    if (absl::Status status = keep(copyAmongZeros(context, out.view, full, part, surroundings), cut); !status.ok())
      return status;
  }
  if (finish)
    if (absl::Status status = finish->bind(output, out.view); !status.ok())
      return status;

  std::vector<void *> addresses(graph->tensorCount(), nullptr);
  addresses[inTensor] = in.view.data;
  addresses[weightsTensor] = kernel.view.data;
  addresses[outTensor] = target().view.data;
  for (size_t i = 0; i < operandTensors.size(); ++i)
    if (operandTensors[i] >= 0) {
      absl::StatusOr<PostOpOperand> operand = operandOf(memory, postOp(i), geometry.outBox);
      if (!operand.ok())
        return operand.status();
      addresses[operandTensors[i]] = const_cast<std::byte *>(operand->address);
    }
  return graph->bind(addresses, scratchMemory + workspaceOffset);
}

absl::Status ConvolutionForm::pack(DeviceStream &stream) {
  return task.packOnce && copyWeights ? copyWeights->issue(stream) : absl::OkStatus();
}

absl::Status ConvolutionForm::issue(DeviceStream &stream, size_t plan) {
  absl::Status status;
  if (copyWeights && !task.packOnce)
    status = copyWeights->issue(stream);
  if (status.ok() && copyIn)
    status = copyIn->issue(stream);
  if (status.ok())
    status = graph->issue(stream, plan);
  if (status.ok() && cut)
    status = cut->issue(stream);
  return status.ok() && finish ? finish->issue(stream) : status;
}

void ConvolutionForm::report(LibraryCallReport &report) const {
  report.fused = static_cast<int64_t>(choice.fused);
  report.addStaged(staging.input.isStaged, "input");
  report.addStaged(staging.weights.isStaged, task.packOnce ? "weights, once" : "weights");
  report.addStaged(staging.output.isStaged, "output");
}
