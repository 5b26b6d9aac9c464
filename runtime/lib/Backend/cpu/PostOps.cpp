//===- PostOps.cpp - Post-ops of library calls ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostOps.h"

#include "../common/PostOpRead.h"

#include <algorithm>
#include <limits>

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

PostOps::PostOps(const RankMemory &context, const std::vector<PostOpInfo> &ops, uint32_t output, bool direct,
                 const layout::Box &box, const MemoryView &view, std::vector<int> dims, std::vector<int> order,
                 int channel, memory::data_type type)
    : context(context), ops(ops), output(output), direct(direct), box(box), dims(std::move(dims)),
      order(std::move(order)), channel(channel), type(type),
      resultDesc(describe(view, box, this->dims, this->order, type)), operands(ops.size()), view(view) {
  for (int index : this->order)
    format.order.push_back(this->dims[index]);
}

bool PostOps::needsStaging(const RankMemory &context, const std::vector<PostOpInfo> &ops, uint32_t output) {
  int sums = 0, others = 0;
  for (const PostOpInfo &op : ops) {
    if (!readsResult(context, op, output))
      continue;
    bool whole = context.plan.bufferOf(op.tensor).shape == context.plan.bufferOf(output).shape;
    ++(op.kind == PostOpKind::AddTensor && whole ? sums : others);
  }
  return sums > 1 || others > 0;
}

absl::Status PostOps::prepareOperand(size_t index, ScratchPlan &scratch) {
  if (!ops[index].readsTensor())
    return absl::OkStatus();
  absl::StatusOr<PostOpRead> read = postOpRead(context, ops[index], box);
  if (!read.ok())
    return read.status();
  Operand operand;
  operand.source = read->repeated(box);
  operand.view = std::move(read->view);
  operand.box = read->box;
  operand.full = read->isFull;
  operand.inPlace = direct && readsResult(context, ops[index], output) && operand.box == box;

  // The library is slow for operands that do not lie as the result does, and knows few broadcasts.
  bool vector = true;
  for (int dim = 0; dim < box.rank(); ++dim)
    vector &= dim == channel || operand.box[dim].size() == 1;
  bool usable = operand.inPlace || vector || (operand.full && isDense(operand.view, operand.box, format));
  if (!usable)
    stage(operand, scratch);
  operand.desc = describe(operand.view, operand.box, dims, order, type);
  operands[index] = std::move(operand);
  return absl::OkStatus();
}

void PostOps::stage(Operand &operand, ScratchPlan &scratch) const {
  operand.view = MemoryView::packed(operand.view.type, box, format);
  operand.box = box;
  operand.stagedOffset = scratch.add(operand.view.bytes());
  operand.staging.emplace(operand.view, operand.source, box);
}

bool PostOps::isBias(size_t index) const {
  if (ops[index].kind != PostOpKind::AddTensor)
    return false;
  const Operand &operand = *operands[index];
  for (int dim = 0; dim < box.rank(); ++dim)
    if (operand.box[dim].size() != (dim == channel ? box[dim].size() : 1))
      return false;
  return !operand.inPlace && (box[channel].size() == 1 || operand.view.strides[channel] == 1);
}

std::optional<dnnl::primitive_attr> PostOps::fuse(size_t count) {
  dnnl::post_ops list;
  fusedCount = count;
  fusedBias = false;
  sum.reset();
  cut.reset();
  std::vector<algorithm> used;
  auto attributesOf = [](const dnnl::post_ops &list) {
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(list);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  };
  for (size_t i = 0; i < count; ++i) {
    if (!ops[i].readsTensor()) {
      std::vector<Eltwise> parts = eltwiseOf(ops[i]);
      bool loses = mayLoseNan(ops[i]);
      // The call up to the first one has all NaN that a second one loses, unless NaN arises between the two.
      if (loses && cut && (cut->op + 1 != i || parts.size() > 1))
        return std::nullopt;
      // The call writes over what it adds. Sums that overflow are not NaN, but functions of them may be: HardSwish of
      // minus infinity, or infinity times a slope of 0.
      bool cutsSums = sum && *sum + 1 == i && (parts.size() == 1 || parts.front().alpha != 0);
      if (loses && !cut && sum && operands[*sum]->inPlace && !cutsSums)
        return std::nullopt;
      // Some implementations of Relu multiply -infinity by 0, which is mended where it is last and loses NaN first.
      if (loses && parts.back().kind == algorithm::eltwise_relu && (cut || i + 1 < count))
        parts.back() = {algorithm::eltwise_clip_v2, 0, std::numeric_limits<float>::infinity()};
      for (const Eltwise &eltwise : parts) {
        if (loses && !cut && &eltwise == &parts.back())
          cut = Cut{i, eltwise.kind == algorithm::eltwise_relu, attributesOf(list)};
        // oneDNN 2.6 gives a second operation of the same kind the parameters of the first.
        if (std::find(used.begin(), used.end(), eltwise.kind) != used.end())
          return std::nullopt;
        used.push_back(eltwise.kind);
        list.append_eltwise(1.0f, eltwise.kind, eltwise.alpha, eltwise.beta);
      }
    } else if (i == 0 && biasFirst && isBias(0)) {
      fusedBias = true;
    } else if (ops[i].kind == PostOpKind::AddTensor && operands[i]->full && !sum) {
      sum = i;
      list.append_sum(1.0f);
    } else {
      return std::nullopt;
    }
  }
  return attributesOf(list);
}

absl::Status PostOps::stageOperands(ScratchPlan &scratch) {
  for (size_t i = 0; i < ops.size(); ++i)
    if (absl::Status status = prepareOperand(i, scratch); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status PostOps::prepare(bool biasFirst, ScratchPlan &scratch,
                              const std::function<Outcome(const Fused &)> &create) {
  this->biasFirst = biasFirst;
  auto attempt = [&](size_t count) {
    try {
      std::optional<dnnl::primitive_attr> attributes = fuse(count);
      if (!attributes)
        return Outcome::Impossible;
      Fused fused{*attributes, fusedBias, {}};
      if (fusedBias)
        fused.biasDesc = memory::desc({box[channel].size()}, type, memory::format_tag::a);
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
  // If nothing is fast, take what is possible.
  for (Outcome wanted : {Outcome::Fast, Outcome::Slow})
    for (size_t count = ops.size() + 1; count-- > least;)
      if (attempt(count) == wanted) {
        slow = wanted == Outcome::Slow;
        if (sum && !operands[*sum]->inPlace)
          preload.emplace(view, operands[*sum]->source, box);
        return prepareRest(count, scratch);
      }
  return absl::UnimplementedError(
      "oneDNN on this machine has no implementation of this call; compile the model with --no-libraries, which "
      "uses generated kernels instead");
}

void PostOps::keepNans(const NanRecovery::Describe &describe, const MemoryView &view, const layout::Box &box,
                       const memory::desc &desc) {
  if (type == memory::data_type::s32 || !cut)
    return;
  bool isRelu = cut->isRelu && cut->op + 1 == fusedCount;
  recovery = std::make_unique<NanRecovery>(describe, cut->before, isRelu, view, box, desc);
}

absl::Status PostOps::prepareSeparate(ScratchPlan &scratch) { return prepareRest(0, scratch); }

bool PostOps::createSeparate(Separate &separate) const {
  auto create = [&](auto desc, const dnnl::post_ops &list) {
    using Primitive =
        std::conditional_t<std::is_same_v<decltype(desc), dnnl::binary::desc>, dnnl::binary, dnnl::eltwise_forward>;
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(list);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    typename Primitive::primitive_desc primitive(desc, attributes, cpuEngine());
    separate.scratchpadDesc = primitive.scratchpad_desc();
    separate.scratchpad = separate.scratchpadDesc.get_size();
    separate.primitive = Primitive(primitive);
    return !isReference(primitive.impl_info_str());
  };
  const PostOpInfo &op = ops[separate.first];
  std::vector<Eltwise> list = eltwiseOf(ops[separate.first + separate.count - 1]);
  dnnl::post_ops fused;
  for (size_t i = op.readsTensor() ? 0 : 1; i < list.size(); ++i)
    fused.append_eltwise(1.0f, list[i].kind, list[i].alpha, list[i].beta);
  if (op.readsTensor())
    return create(dnnl::binary::desc(binaryOf(op.kind), resultDesc, operands[separate.first]->desc, resultDesc), fused);
  return create(dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference, list[0].kind, resultDesc, list[0].alpha,
                                            list[0].beta),
                fused);
}

absl::Status PostOps::prepareRest(size_t first, ScratchPlan &scratch) {
  return guardLibrary([&]() -> absl::Status {
    for (size_t i = first; i < ops.size();) {
      Separate separate{i, 1, {}, 0, 0, {}, {}, {}};
      if (!cutSteps(ops[i]).empty() && type != memory::data_type::s32) {
        separate.pass.emplace(ops[i], view, box);
        rest.push_back(std::move(separate));
        ++i;
        continue;
      }
      // An addition or product takes the activation after it along, if that stays fast.
      bool pair =
          ops[i].readsTensor() && i + 1 < ops.size() && !ops[i + 1].readsTensor() && cutSteps(ops[i + 1]).empty();
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
        bool isFast = createSeparate(separate);
        // oneDNN's reference implementation makes zeros of NaN: that of elements which do not follow each other.
        if (!isFast && mayLoseNan(ops[i]) && type != memory::data_type::s32) {
          separate = Separate{i, 1, {}, 0, 0, {}, {}, {}};
          separate.pass.emplace(ops[i], view, box);
          isFast = true;
        }
        slowRest |= !isFast;
      }
      separate.scratchpadOffset = scratch.add(separate.scratchpad);
      i += separate.count;
      rest.push_back(std::move(separate));
    }
    return absl::OkStatus();
  });
}

absl::Status PostOps::bind(std::byte *result, std::byte *scratch) {
  data = result;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!operands[i])
      continue;
    Operand &operand = *operands[i];
    const MemoryView &memory = context.memory(ops[i].tensor);
    if (operand.staging) {
      operand.data = scratch + operand.stagedOffset;
      operand.staging->bind(operand.data, memory.data);
    } else {
      operand.view.data = memory.data;
      operand.data = operand.view.address(operand.box);
    }
  }
  if (preload)
    preload->bind(result, context.memory(ops[*sum].tensor).data);
  return guardLibrary([&]() -> absl::Status {
    for (Separate &separate : rest) {
      if (separate.pass)
        continue;
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
  if (fusedBias)
    call.setArgument(DNNL_ARG_BIAS, memory::desc({box[channel].size()}, type, memory::format_tag::a),
                     operands[0]->data);
}

absl::Status PostOps::runBefore() const {
  for (size_t i = 0; i < ops.size(); ++i)
    if (operands[i] && operands[i]->staging && sum != i)
      if (absl::Status status = operands[i]->staging->run(); !status.ok())
        return status;
  return preload ? preload->run() : absl::OkStatus();
}

absl::Status PostOps::run(const LibraryCall &call, std::byte *target) const {
  if (!recovery)
    return call.run();
  auto addend = NanRecovery::Addend::None;
  if (sum && *sum < cut->op)
    addend = preload ? NanRecovery::Addend::Kept : NanRecovery::Addend::InPlace;
  return recovery->run(call, target, addend, [this](std::byte *memory) {
    Copier copier(view, operands[*sum]->source, box);
    copier.bind(memory, context.memory(ops[*sum].tensor).data);
    return copier.run();
  });
}

absl::Status PostOps::runRest() const {
  for (const Separate &separate : rest) {
    if (separate.pass)
      separate.pass->run(data);
    else if (absl::Status status = separate.call.run(); !status.ok())
      return status;
  }
  return absl::OkStatus();
}
