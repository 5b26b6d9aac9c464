//===- MatMul.cpp - Matrix product steps -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../common/ProductGeometry.h"
#include "KernelProduct.h"
#include "LibraryInstructions.h"
#include "LibrarySteps.h"
#include "PostOps.h"

#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;
using layout::Box;

namespace {

class MatMulStep : public LibraryStep {
public:
  MatMulStep(const RankMemory &context, const MatMulCall &call, const Box &loops, WeightUse use)
      : context(context), call(call), loops(loops), use(use), packOnce(use != WeightUse::Changing),
        output(call.output) {}

  absl::Status plan() override;
  int64_t stagingBytes() const override { return staging; }
  absl::Status create(CallBudget &budget) override;
  bool isSlow() const override { return postOps->isSlow() || postOps->isRestSlow(); }
  bool sharesWeights(LibraryStep &first) override;
  int64_t packedUse() const override {
    if (shared)
      return 0;
    return kernels ? kernels->packedBytes() : packs ? alignedSize(packedDesc.get_size()) : 0;
  }
  std::string packedKey() const override;
  std::string implementation() const override { return kernels ? kernels->implementation() : implementationName; }
  bool isReference() const override { return !kernels && runtime::isReference(implementationName.c_str()); }
  void setPackedMemory(std::byte *memory) override { packed = memory; }
  absl::Status bind(std::byte *scratch) override;
  absl::Status pack() override;
  absl::Status run() override;

private:
  /// One of the two factors: the part of it that this rank needs, and where the library finds it.
  struct Factor {
    uint32_t tensor;
    Box box;
    bool transpose;
    std::vector<int> dims; ///< Logical dimension for each of the library's.
    bool staged = false;
    MemoryView view;
    int64_t offset = 0;
    Copier copy;
    memory::desc desc;
    memory::data_type type{};
  };

  void orderDims(Factor &factor) const;
  /// What is described, with the dimensions of the rows as one.
  memory::desc mergeRowDims(const memory::desc &desc) const;
  /// Has the library work on operands where they are, or on all of them copied to packed memory.
  absl::Status planCall(bool stageAll);
  absl::Status createCall(CallBudget &budget);
  /// How the library should have the weights.
  memory::desc wantedWeights() const;
  /// Whether the runtime's own kernels do the call.
  bool createKernels(CallBudget &budget);
  void stage(Factor &factor, bool stageAll);

  const RankMemory &context;
  const MatMulCall &call;
  Box loops;
  WeightUse use;
  bool packOnce; ///< Weights never change: they are packed when the session starts.
  uint32_t output;
  ProductTypes types;
  ProductGeometry geometry;
  std::vector<int> order; ///< 0, 1, ...: of the result.
  Factor a, b;

  ScratchPlan scratchPlan;
  int64_t staging = 0;
  bool stagedOut = false;
  MemoryView outView;
  int64_t outOffset = 0, scratchpadOffset = 0;
  Copier copyOut;
  std::unique_ptr<PostOps> postOps;
  std::unique_ptr<KernelProduct> kernels; ///< Null where the library does the call.
  dnnl::matmul primitive;
  std::string implementationName;
  memory::desc outDesc, packedDesc, scratchpadDesc;
  bool packs = false;
  const MatMulStep *shared = nullptr; ///< That packs the weights of this one, too.
  dnnl::reorder packer;
  std::byte *packed = nullptr;
  LibraryCall packCall, mainCall;
};

} // namespace

void MatMulStep::orderDims(Factor &factor) const {
  int rank = geometry.outBox.rank(), missing = rank - factor.box.rank();
  for (int dim = 0; dim < rank; ++dim)
    factor.dims.push_back(dim < missing ? -1 : dim - missing);
  if (factor.transpose)
    std::swap(factor.dims[rank - 2], factor.dims[rank - 1]);
}

memory::desc MatMulStep::mergeRowDims(const memory::desc &desc) const {
  memory::dims extents = desc.dims(),
               strides(desc.data.format_desc.blocking.strides, desc.data.format_desc.blocking.strides + extents.size());
  layout::StridedDim rows = *mergeRows(extents, strides, call.rowDims);
  auto merge = [&](memory::dims &values, int64_t value) {
    values.erase(values.end() - 1 - call.rowDims, values.end() - 1);
    values.insert(values.end() - 1, value);
  };
  merge(extents, rows.extent);
  merge(strides, rows.stride);
  return memory::desc(extents, desc.data_type(), strides);
}

void MatMulStep::stage(Factor &factor, bool stageAll) {
  const MemoryView &memory = context.memory(factor.tensor);
  factor.staged = stageAll;
  factor.view = memory.part(factor.box);
  if (factor.staged) {
    factor.view = MemoryView::packed(memory.type, factor.box, MemoryFormat::rowMajor(factor.box.rank()));
    factor.offset = scratchPlan.add(factor.view.bytes());
    factor.copy = Copier(factor.view, memory, factor.box);
  }
  // In memory the library's last two dimensions are swapped when the factor is transposed, or lies by columns.
  std::vector<int> physical = order;
  size_t last = physical.size() - 1;
  int inner = factor.dims[last], outer = factor.dims[last - 1];
  if (inner >= 0 && outer >= 0 && factor.view.strides[inner] > factor.view.strides[outer])
    std::swap(physical[last - 1], physical[last]);
  factor.desc = mergeRowDims(describe(factor.view, factor.box, factor.dims, physical, factor.type));
}

absl::Status MatMulStep::planCall(bool stageAll) {
  scratchPlan = ScratchPlan();
  const MemoryView &memory = context.memory(output);
  bool writesOver = context.plan.tensors[call.a].buffer == context.plan.tensors[output].buffer;
  stagedOut = stageAll || writesOver || geometry.nothingToSum || PostOps::needsStaging(context, call.postOps, output);
  outView = memory.part(geometry.outBox);
  if (stagedOut) {
    outView = MemoryView::packed(memory.type, geometry.outBox, MemoryFormat::rowMajor(geometry.outBox.rank()));
    outOffset = scratchPlan.add(outView.bytes());
    copyOut = Copier(memory, outView, geometry.outBox);
  }
  outDesc = mergeRowDims(describe(outView, geometry.outBox, order, order, types.result));
  postOps = std::make_unique<PostOps>(context, call.postOps, output, /*direct=*/!stagedOut, geometry.outBox, outView,
                                      order, order, /*channel=*/geometry.outBox.rank() - 1, types.result);
  if (absl::Status status = postOps->stageOperands(scratchPlan); !status.ok() || geometry.nothingToSum)
    return status;
  stage(a, stageAll);
  stage(b, stageAll && !packOnce);
  return absl::OkStatus();
}

bool MatMulStep::createKernels(CallBudget &budget) {
  kernels = nullptr;
  // Parts of a call use what the first one packs as it does.
  bool isWanted = shared ? shared->kernels != nullptr : KernelProduct::isFaster() && packOnce && !b.staged;
  int64_t rows = 1;
  for (int last = geometry.outBox.rank() - 1, dim = last - call.rowDims; dim < last; ++dim)
    rows *= call.loops[dim].extent;
  if (!isWanted || !KernelProduct::takes(a.desc, b.desc, outDesc, rows))
    return false;
  kernels = std::make_unique<KernelProduct>(a.desc, b.desc, outDesc);
  auto create = [&](const PostOps::Fused &fused) { return kernels->create(fused, budget, shared != nullptr); };
  if (!postOps->prepare(/*biasFirst=*/true, scratchPlan, create).ok())
    kernels = nullptr;
  return kernels != nullptr;
}

memory::desc MatMulStep::wantedWeights() const {
  if (shared)
    return shared->packedDesc;
  if (!packOnce)
    return b.desc;
  memory::dims extents = b.desc.dims();
  // With AMX, integers that are packed as the library likes them take 1.7 times as long.
  if (!types.isInteger() || libraryInstructions() != dnnl::cpu_isa::avx512_core_amx)
    return memory::desc(extents, types.second, memory::format_tag::any);
  if (use != WeightUse::Copied)
    return b.desc;
  memory::dims strides(extents.size(), 1);
  for (size_t dim = extents.size() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * extents[dim];
  return memory::desc(extents, types.second, strides);
}

absl::Status MatMulStep::createCall(CallBudget &budget) {
  if (geometry.nothingToSum)
    return postOps->prepareSeparate(scratchPlan);
  if (createKernels(budget))
    return absl::OkStatus();
  if (shared && shared->kernels)
    return absl::UnimplementedError("the weights of another part are packed for kernels that cannot do this one");
  NanRecovery::Describe describe;
  auto create = [&](const PostOps::Fused &fused) {
    auto make = [first = a.desc, result = outDesc](const memory::desc &second) {
      return dnnl::matmul::desc(first, second, result);
    };
    // The library refers to it as long as it looks for other implementations.
    dnnl::matmul::desc operation = make(wantedWeights());
    dnnl::matmul::primitive_desc desc(operation, fused.attributes, cpuEngine());
    // What another part packs takes nothing of the budget.
    if (!(shared ? budget.choose(desc, shared->packedDesc, WeightUse::Constant) : budget.choose(desc, b.desc, use)))
      return PostOps::Outcome::Impossible;
    packedDesc = desc.weights_desc();
    scratchpadDesc = desc.scratchpad_desc();
    primitive = dnnl::matmul(desc);
    implementationName = desc.impl_info_str();
    describe = [make, packed = packedDesc](const dnnl::primitive_attr &attributes) {
      return dnnl::matmul::primitive_desc(make(packed), attributes, cpuEngine());
    };
    return runtime::isReference(desc.impl_info_str()) ? PostOps::Outcome::Slow : PostOps::Outcome::Fast;
  };
  if (absl::Status status = postOps->prepare(/*biasFirst=*/false, scratchPlan, create); !status.ok())
    return status;
  return guardLibrary([&]() -> absl::Status {
    postOps->keepNans(describe);
    packs = use == WeightUse::Copied || packedDesc != b.desc;
    if (packs)
      packer = dnnl::reorder(dnnl::reorder::primitive_desc(cpuEngine(), b.desc, cpuEngine(), packedDesc));
    scratchpadOffset = scratchPlan.add(scratchpadDesc.get_size());
    return absl::OkStatus();
  });
}

bool MatMulStep::sharesWeights(LibraryStep &first) {
  auto &other = static_cast<MatMulStep &>(first);
  if (!packOnce || geometry.nothingToSum || geometry.bBox != other.geometry.bBox)
    return false;
  shared = &other;
  return true;
}

std::string MatMulStep::packedKey() const {
  if (packedUse() == 0)
    return {};
  if (kernels)
    return runtime::packedKey(context, call.b, geometry.bBox,
                              kernels->packedFormat() + (b.transpose ? " by rows" : ""));
  return runtime::packedKey(context, call.b, geometry.bBox, b.desc, packedDesc);
}

absl::Status MatMulStep::pack() {
  if (shared)
    return absl::OkStatus();
  if (!kernels)
    return packs ? packCall.run() : absl::OkStatus();
  kernels->pack();
  return absl::OkStatus();
}

absl::Status MatMulStep::plan() {
  absl::StatusOr<ProductTypes> found =
      ProductTypes::find(context.memory(call.a).type, context.memory(call.b).type, context.memory(output).type);
  if (!found.ok())
    return found.status();
  types = *found;
  absl::StatusOr<ProductGeometry> planned = ProductGeometry::plan(context, call, loops);
  if (!planned.ok())
    return planned.status();
  geometry = *std::move(planned);
  order = MemoryFormat::rowMajor(geometry.outBox.rank()).order;
  a = Factor{call.a, geometry.aBox, call.form.transposesA, {}, false, {}, 0, {}, {}, types.first};
  b = Factor{call.b, geometry.bBox, call.form.transposesB, {}, false, {}, 0, {}, {}, types.second};
  orderDims(a);
  orderDims(b);
  absl::Status status = planCall(/*stageAll=*/false);
  staging = scratchPlan.size();
  return status;
}

absl::Status MatMulStep::create(CallBudget &budget) {
  const absl::Status tooLittle = absl::ResourceExhaustedError("too little scratch memory");
  absl::Status status = createCall(budget);
  auto extra = [&] { return scratchPlan.size() - staging; };
  if (!geometry.nothingToSum && (!status.ok() || postOps->isSlow())) {
    absl::Status direct = status;
    status = planCall(/*stageAll=*/true);
    // Copies of all operands may be more than the plan allows.
    if (status.ok())
      status = budget.allows(0, extra()) ? createCall(budget) : tooLittle;
    if (status.ok() && !budget.allows(0, extra()))
      status = tooLittle;
    if (direct.ok() && !status.ok()) {
      status = planCall(/*stageAll=*/false);
      if (status.ok())
        status = createCall(budget);
    }
  }
  if (status.ok() && !budget.allows(0, extra()))
    status = tooLittle;
  if (status.ok())
    budget.takeScratch(extra());
  return status;
}

absl::Status MatMulStep::bind(std::byte *scratch) {
  const MemoryView &memory = context.memory(output);
  outView.data = stagedOut ? scratch + outOffset : memory.address(geometry.outBox);
  if (stagedOut)
    copyOut.bind(memory.data, outView.data);
  if (absl::Status status = postOps->bind(outView.data, scratch); !status.ok())
    return status;
  if (geometry.nothingToSum)
    return absl::OkStatus();
  for (Factor *factor : {&a, &b}) {
    const MemoryView &source = context.memory(factor->tensor);
    factor->view.data = factor->staged ? scratch + factor->offset : source.address(factor->box);
    if (factor->staged)
      factor->copy.bind(factor->view.data, source.data);
  }
  if (kernels) {
    kernels->bind(a.view.data, b.view.data, shared ? shared->packed : packed, outView.data, postOps->biasData());
    return absl::OkStatus();
  }
  return guardLibrary([&]() -> absl::Status {
    void *weights = b.view.data;
    if (packs) {
      std::byte *target = shared ? shared->packed : packed;
      packCall = LibraryCall(packer);
      packCall.setArgument(DNNL_ARG_FROM, b.desc, b.view.data);
      packCall.setArgument(DNNL_ARG_TO, packedDesc, target);
      weights = target;
    }
    mainCall = LibraryCall(primitive);
    mainCall.setArgument(DNNL_ARG_SRC, a.desc, a.view.data);
    mainCall.setArgument(DNNL_ARG_WEIGHTS, packedDesc, weights);
    mainCall.setArgument(DNNL_ARG_DST, outDesc, outView.data);
    if (scratchpadDesc.get_size() > 0)
      mainCall.setArgument(DNNL_ARG_SCRATCHPAD, scratchpadDesc, scratch + scratchpadOffset);
    postOps->addArguments(mainCall);
    return absl::OkStatus();
  });
}

absl::Status MatMulStep::run() {
  if (absl::Status status = postOps->runBefore(); !status.ok())
    return status;
  if (geometry.nothingToSum) {
    std::memset(outView.data, 0, outView.bytes());
  } else {
    for (const Factor *factor : {&a, &b})
      if (factor->staged)
        if (absl::Status status = factor->copy.run(); !status.ok())
          return status;
    if (kernels)
      kernels->run();
    else if (absl::Status status = postOps->run(mainCall); !status.ok())
      return status;
  }
  if (absl::Status status = postOps->runRest(); !status.ok())
    return status;
  return stagedOut ? copyOut.run() : absl::OkStatus();
}

std::unique_ptr<LibraryStep> dovetail::runtime::makeMatMul(const RankMemory &context, const MatMulCall &call,
                                                           const Box &loops, WeightUse use) {
  return std::make_unique<MatMulStep>(context, call, loops, use);
}
