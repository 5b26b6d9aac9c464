//===- PostOps.cpp - Post-ops of library calls ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostOps.h"

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::algorithm;
using dnnl::memory;

namespace {

struct Eltwise {
  algorithm kind;
  float alpha, beta;
};

/// oneDNN's eltwise operations for a post-op without operand, in order.
std::vector<Eltwise> eltwiseOf(const PostOpInfo &op) {
  switch (op.kind) {
  case PostOpKind::AddTensor:
  case PostOpKind::MulTensor:
    return {};
  case PostOpKind::Relu:
    return {{algorithm::eltwise_relu, 0, 0}};
  case PostOpKind::LeakyRelu:
    return {{algorithm::eltwise_relu, op.alpha, 0}};
  case PostOpKind::Clip:
    return {{algorithm::eltwise_clip_v2, op.alpha, op.beta}};
  case PostOpKind::Sigmoid:
    return {{algorithm::eltwise_logistic, 0, 0}};
  case PostOpKind::Tanh:
    return {{algorithm::eltwise_tanh, 0, 0}};
  case PostOpKind::Gelu:
    return {{algorithm::eltwise_gelu_erf, 0, 0}};
  case PostOpKind::GeluTanh:
    return {{algorithm::eltwise_gelu_tanh, 0, 0}};
  case PostOpKind::HardSwish:
    return {{algorithm::eltwise_hardswish, 0, 0}};
  case PostOpKind::Swish:
    return {{algorithm::eltwise_swish, op.alpha, 0}};
  case PostOpKind::Elu:
    return {{algorithm::eltwise_elu, op.alpha, 0}};
  case PostOpKind::HardSigmoid:
    return {{algorithm::eltwise_linear, op.alpha, op.beta}, {algorithm::eltwise_clip_v2, 0, 1}};
  }
  return {};
}

algorithm binaryOf(PostOpKind kind) {
  return kind == PostOpKind::AddTensor ? algorithm::binary_add : algorithm::binary_mul;
}

} // namespace

PostOps::PostOps(SessionContext &context, const std::vector<PostOpInfo> &ops, uint32_t output, bool direct,
                 const layout::Box &box, const MemoryView &view, std::vector<int> dims, std::vector<int> order,
                 memory::data_type type)
    : context(context), ops(ops), output(output), direct(direct), box(box), dims(std::move(dims)),
      order(std::move(order)), type(type), resultDesc(describe(view, box, this->dims, this->order, type)),
      operands(ops.size()) {}

bool PostOps::needsStaging(const SessionContext &context, const std::vector<PostOpInfo> &ops, uint32_t output) {
  int sums = 0, others = 0;
  for (const PostOpInfo &op : ops) {
    if (!op.readsTensor() || context.plan.tensors[op.tensor].buffer != context.plan.tensors[output].buffer)
      continue;
    bool whole = context.plan.bufferOf(op.tensor).shape == context.plan.bufferOf(output).shape;
    ++(op.kind == PostOpKind::AddTensor && whole ? sums : others);
  }
  return sums > 1 || others > 0;
}

absl::Status PostOps::prepareOperand(size_t index, ScratchPlan &scratch) {
  if (!ops[index].readsTensor() || operands[index])
    return absl::OkStatus();
  uint32_t tensor = ops[index].tensor;
  Operand operand;
  operand.view = context.memory(tensor);
  const std::vector<int64_t> &shape = context.plan.bufferOf(tensor).shape;
  int missing = box.rank() - static_cast<int>(shape.size());
  std::vector<layout::Interval> intervals;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    intervals.push_back(shape[dim] == 1 ? layout::Interval{0, 1} : box[missing + dim]);
  operand.box = layout::Box(intervals);
  if (!context.box(tensor).contains(operand.box))
    return absl::DataLossError(absl::StrCat("damaged plan: the post-op needs ", operand.box.str(), " of ",
                                            context.name(tensor), ", but this rank holds ", context.box(tensor).str()));
  for (int dim : dims)
    operand.dims.push_back(dim < missing ? -1 : dim - missing);

  std::vector<int> operandOrder;
  int64_t longDims = 0;
  for (int index : order)
    if (int dim = operand.dims[index]; dim >= 0) {
      operandOrder.push_back(dim);
      longDims += operand.box[dim].size() > 1;
    }
  operand.inPlace =
      direct && context.plan.tensors[tensor].buffer == context.plan.tensors[output].buffer && operand.box == box;
  // Operands that vary in several dimensions must lie as the result does; the library is slow otherwise.
  bool usable = operand.inPlace || isDense(operand.view, operand.box, operandOrder) ||
                (longDims <= 1 && operand.view.blockDim < 0);
  if (!usable) {
    MemoryFormat format;
    format.order = operandOrder;
    operand.staged = MemoryView::packed(operand.view.type, operand.box, format);
    operand.stagedOffset = scratch.add(operand.staged.bytes());
    operand.staging.emplace(operand.staged, operand.view, operand.box);
    operand.desc = describe(operand.staged, operand.box, operand.dims, order, type);
  } else {
    operand.desc = describe(operand.view, operand.box, operand.dims, order, type);
  }
  operands[index] = std::move(operand);
  return absl::OkStatus();
}

bool PostOps::isBias(size_t index) const {
  if (ops[index].kind != PostOpKind::AddTensor || dims.size() < 2)
    return false;
  const Operand &operand = *operands[index];
  if (operand.inPlace)
    return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t extent = operand.dims[i] < 0 ? 1 : operand.box[operand.dims[i]].size();
    if (i != 1 && extent != 1)
      return false;
    if (i == 1 && (extent != box[dims[1]].size() ||
                   (extent > 1 && !operand.staging && operand.view.strides[operand.dims[i]] != 1)))
      return false;
  }
  return true;
}

dnnl::primitive_attr PostOps::attributesOf(size_t first, size_t count, bool bias) const {
  dnnl::post_ops list;
  for (size_t i = first; i < first + count; ++i) {
    if (bias && i == first)
      continue;
    if (!ops[i].readsTensor())
      for (const Eltwise &eltwise : eltwiseOf(ops[i]))
        list.append_eltwise(1.0f, eltwise.kind, eltwise.alpha, eltwise.beta);
    else if (operands[i]->inPlace)
      list.append_sum(1.0f);
    else
      list.append_binary(binaryOf(ops[i].kind), operands[i]->desc);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(list);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

absl::Status PostOps::prepare(bool biasFirst, ScratchPlan &scratch,
                              const std::function<Outcome(const Fused &)> &create) {
  for (size_t i = 0; i < ops.size(); ++i)
    if (absl::Status status = prepareOperand(i, scratch); !status.ok())
      return status;
  auto attempt = [&](size_t count) {
    fusedCount = count;
    fusedBias = biasFirst && count > 0 && isBias(0);
    try {
      Fused fused{attributesOf(0, count, fusedBias), fusedBias, {}};
      if (fusedBias)
        fused.biasDesc = memory::desc({box[dims[1]].size()}, type, memory::format_tag::a);
      return create(fused);
    } catch (const dnnl::error &) {
      return Outcome::Impossible;
    }
  };
  // What the call overwrites can be added by the call only.
  size_t least = 0;
  for (size_t i = 0; i < ops.size(); ++i)
    if (operands[i] && operands[i]->inPlace)
      least = i + 1;
  for (size_t count = ops.size() + 1; count-- > least;)
    if (attempt(count) == Outcome::Fast)
      return prepareRest(count, scratch);
  // Nothing is fast. Take what is possible.
  slow = true;
  for (size_t count = ops.size() + 1; count-- > least;)
    if (attempt(count) != Outcome::Impossible)
      return prepareRest(count, scratch);
  return absl::UnimplementedError(
      "oneDNN on this machine cannot do it; compile the model with --no-libraries, which uses "
      "generated kernels instead");
}

absl::Status PostOps::prepareSeparate(ScratchPlan &scratch) {
  for (size_t i = 0; i < ops.size(); ++i)
    if (absl::Status status = prepareOperand(i, scratch); !status.ok())
      return status;
  return prepareRest(0, scratch);
}

bool PostOps::createSeparate(Separate &separate) const {
  auto create = [&](auto desc, const dnnl::primitive_attr &attributes) {
    using Primitive =
        std::conditional_t<std::is_same_v<decltype(desc), dnnl::binary::desc>, dnnl::binary, dnnl::eltwise_forward>;
    typename Primitive::primitive_desc primitive(desc, attributes, cpuEngine());
    separate.scratchpadDesc = primitive.scratchpad_desc();
    separate.scratchpad = separate.scratchpadDesc.get_size();
    separate.primitive = Primitive(primitive);
    return !isReference(primitive.impl_info_str());
  };
  const PostOpInfo &op = ops[separate.first];
  dnnl::primitive_attr attributes = attributesOf(separate.first + 1, separate.count - 1, /*bias=*/false);
  if (op.readsTensor())
    return create(dnnl::binary::desc(binaryOf(op.kind), resultDesc, operands[separate.first]->desc, resultDesc),
                  attributes);
  std::vector<Eltwise> list = eltwiseOf(op);
  dnnl::post_ops more;
  for (size_t i = 1; i < list.size(); ++i)
    more.append_eltwise(1.0f, list[i].kind, list[i].alpha, list[i].beta);
  if (list.size() > 1)
    attributes.set_post_ops(more);
  return create(dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference, list[0].kind, resultDesc, list[0].alpha,
                                            list[0].beta),
                attributes);
}

absl::Status PostOps::prepareRest(size_t first, ScratchPlan &scratch) {
  return guardLibrary([&]() -> absl::Status {
    for (size_t i = first; i < ops.size();) {
      Separate separate{i, 1, {}, 0, 0, {}, {}};
      // An addition or product takes the activation after it along, if that stays fast.
      bool pair = ops[i].readsTensor() && i + 1 < ops.size() && !ops[i + 1].readsTensor();
      bool done = false;
      if (pair) {
        separate.count = 2;
        try {
          done = createSeparate(separate);
        } catch (const dnnl::error &) {
          done = false;
        }
      }
      if (!done) {
        separate.count = 1;
        createSeparate(separate);
      }
      separate.scratchpadOffset = scratch.add(separate.scratchpad);
      i += separate.count;
      rest.push_back(std::move(separate));
    }
    return absl::OkStatus();
  });
}

absl::Status PostOps::bind(std::byte *result, std::byte *scratch) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!operands[i])
      continue;
    Operand &operand = *operands[i];
    std::byte *source = context.memory(ops[i].tensor).data;
    if (operand.staging) {
      operand.data = scratch + operand.stagedOffset;
      operand.staging->bind(operand.data, source);
    } else {
      operand.data = context.memory(ops[i].tensor).address(operand.box);
    }
  }
  return guardLibrary([&]() -> absl::Status {
    for (Separate &separate : rest) {
      separate.call = LibraryCall(separate.primitive);
      bool binary = ops[separate.first].readsTensor();
      separate.call.setArgument(binary ? DNNL_ARG_SRC_0 : DNNL_ARG_SRC, resultDesc, result);
      if (binary)
        separate.call.setArgument(DNNL_ARG_SRC_1, operands[separate.first]->desc, operands[separate.first]->data);
      separate.call.setArgument(DNNL_ARG_DST, resultDesc, result);
      if (separate.scratchpad > 0)
        separate.call.setArgument(DNNL_ARG_SCRATCHPAD, separate.scratchpadDesc, scratch + separate.scratchpadOffset);
    }
    return absl::OkStatus();
  });
}

void PostOps::addArguments(LibraryCall &call) const {
  int index = 0;
  for (size_t i = 0; i < fusedCount; ++i) {
    if (fusedBias && i == 0) {
      call.setArgument(DNNL_ARG_BIAS, memory::desc({box[dims[1]].size()}, type, memory::format_tag::a),
                       operands[0]->data);
      continue;
    }
    if (ops[i].readsTensor() && !operands[i]->inPlace)
      call.setArgument(DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1, operands[i]->desc, operands[i]->data);
    index += ops[i].readsTensor() ? 1 : static_cast<int>(eltwiseOf(ops[i]).size());
  }
}

absl::Status PostOps::runBefore() const {
  for (const std::optional<Operand> &operand : operands)
    if (operand && operand->staging)
      if (absl::Status status = operand->staging->run(); !status.ok())
        return status;
  return absl::OkStatus();
}

absl::Status PostOps::runRest() const {
  for (const Separate &separate : rest)
    if (absl::Status status = separate.call.run(); !status.ok())
      return status;
  return absl::OkStatus();
}
