//===- DivideCalls.cpp - How threads divide library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides which loop of a library call the threads of a rank divide, and into how small parts.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/CallWork.h"
#include "dovetail/Cost/PassCluster.h"
#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Schedule/Passes.h"

#include <numeric>

namespace dovetail {
#define GEN_PASS_DEF_DIVIDECALLS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::Interval;

/// What it takes to give threads their parts and to wait for the last one, and more for each thread.
static constexpr double kDivisionSeconds = 1.5e-6, kThreadSeconds = 1e-7;
/// More threads than these are not thought of.
static constexpr int64_t kMaxParts = 64;
/// Elements of a vector of channels or columns, at most, in libraries' kernels: these parts are not cut.
static constexpr int64_t kVector = 16, kColumns = 64;

namespace {
struct DivideCalls : MeshPass<dovetail::impl::DivideCallsBase<DivideCalls>> {
  using MeshPass::MeshPass;
  DivideCalls(DivideCallsOptions options, std::shared_ptr<const Cluster> found)
      : MeshPass(std::move(options)), found(std::move(found)) {}

  LogicalResult run(MeshOp) override;

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }

  std::shared_ptr<const Cluster> found;
};

/// A loop that may be divided, at multiples of so many iterations.
struct Candidate {
  int loop;
  int64_t step;
};
} // namespace

/// What parts of dimension `dim` of the output must not cut.
static int64_t getStep(const CallForm &form, RankedTensorType output, int dim) {
  return std::visit(
      FormVisitor{[&](const calls::ConvolutionForm &form) -> int64_t {
                    if (dim == 1) // Whole groups, and whole vectors.
                      return std::lcm(kVector, form.groups > 1 ? output.getDimSize(1) / form.groups : 1);
                    return dim >= 2 && form.isTransposed ? form.windows[dim - 2].stride : 1;
                  },
                  [&](const ProductCall &) -> int64_t { return dim == output.getRank() - 1 ? kColumns : 1; },
                  [&](const PoolCall &) -> int64_t { return dim == 1 ? kVector : 1; },
                  [](const auto &) -> int64_t { return 1; }},
      form);
}

/// The loops that may be divided: of the output's dimensions the outermost in memory in which ranks have more than one
/// element, so that parts are whole pieces of memory, and of products without epilogue the rows.
static SmallVector<Candidate> getCandidates(plan::CallOpInterface call, ArrayRef<Box> boxes) {
  SmallVector<Candidate> candidates;
  CallForm form = *call.getCallForm();
  RankedTensorType output = plan::getTensor(call.getOutput());
  plan::BufferOp buffer = plan::getBufferOp(call.getOutput());
  if (!buffer)
    return candidates;
  layout::MemoryFormat format = buffer.getFormat().toLayout();
  auto add = [&](int dim) { candidates.push_back({dim, getStep(form, output, dim)}); };
  for (int dim : format.order)
    if (llvm::any_of(boxes, [&](const Box &box) { return box[dim].size() > 1; })) {
      add(dim);
      break;
    }
  auto *product = std::get_if<ProductCall>(&form);
  if (!product)
    return candidates;
  // Libraries are fast with products whose rows are apart in memory, but not with epilogues there.
  int rows = static_cast<int>(format.order.size()) - 2;
  if (product->rowDims == 1 && call.getPostOps().empty() &&
      llvm::none_of(candidates, [&](Candidate each) { return each.loop == rows; }))
    add(rows);
  return candidates;
}

namespace {
/// How long a call takes if so many threads divide one of its loops.
class DivisionCosts {
public:
  DivisionCosts(plan::CallOpInterface call, const Box &loops, const Device &device, Candidate candidate)
      : call(call), loops(loops), device(device), candidate(candidate),
        steps(llvm::divideCeil(loops[candidate.loop].size(), candidate.step)) {}

  /// The iterations of the largest part.
  int64_t getPart(int64_t parts) const {
    return std::min(static_cast<int64_t>(llvm::divideCeil(steps, parts)) * candidate.step,
                    loops[candidate.loop].size());
  }
  double getSeconds(int64_t parts) const {
    Box part = loops;
    Interval &range = part[candidate.loop];
    range.hi = range.lo + getPart(parts);
    double seconds = device.getSeconds(getCallWork(call, part));
    return parts > 1 ? seconds + kDivisionSeconds + kThreadSeconds * double(parts) : seconds;
  }
  int64_t getMaxParts() const { return std::min(steps, kMaxParts); }

private:
  plan::CallOpInterface call;
  const Box &loops;
  const Device &device;
  Candidate candidate;
  int64_t steps;
};
} // namespace

/// How to divide `call`, whose loops ranks have so; null if one thread is as fast.
static plan::DivisionAttr divide(plan::CallOpInterface call, ArrayRef<Box> boxes, const Cluster &cluster) {
  auto largest = llvm::max_element(boxes, [](const Box &a, const Box &b) { return a.volume() < b.volume(); });
  if (largest->volume() == 0)
    return {};
  const Device &device = cluster.getDevice(largest - boxes.begin());
  plan::DivisionAttr best;
  double least = std::numeric_limits<double>::infinity();
  for (Candidate candidate : getCandidates(call, boxes)) {
    DivisionCosts costs(call, *largest, device, candidate);
    double single = costs.getSeconds(1), fastest = single;
    int64_t parts = 1;
    for (int64_t count = 2; count <= costs.getMaxParts(); ++count)
      if (double seconds = costs.getSeconds(count); seconds < fastest) {
        fastest = seconds;
        parts = count;
      }
    // What saves less than a tenth is not worth the cores.
    if (parts == 1 || fastest > 0.9 * single)
      continue;
    // Nobody knows how many threads there will be: few weigh as much as many.
    double sum = 0;
    for (int64_t count : {2, 4, 8})
      sum += costs.getSeconds(std::min(count, parts));
    if (sum >= least)
      continue;
    least = sum;
    best = plan::DivisionAttr::get(call->getContext(), candidate.loop, candidate.step,
                                   std::max(costs.getPart(parts) / candidate.step, int64_t(1)) * candidate.step);
  }
  return best;
}

LogicalResult DivideCalls::run(MeshOp) {
  getOperation().walk([&](plan::CallOpInterface call) {
    // What runs once is not worth it. Kernels of the runtime's own divide themselves.
    if (isa_and_nonnull<plan::PrologueOp>(call->getParentOp()) ||
        call.getAlgorithm() != plan::ConvolutionAlgorithm::Library || !isElementwise(*call.getCallForm()))
      return;
    SmallVector<int64_t> extents = plan::getExtents(call.getLoops());
    layout::Sharding sharding = toLayout(plan::getDims(call.getLoops()), mesh);
    SmallVector<Box> boxes;
    for (int number = 0; number < mesh.numRanks(); ++number)
      boxes.push_back(sharding.boxOf(mesh, extents, number));
    if (plan::DivisionAttr division = divide(call, boxes, *found))
      call.setDivisionAttr(division);
  });
  return success();
}

std::unique_ptr<Pass> dovetail::createDivideCalls(DivideCallsOptions options, std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<DivideCalls>(std::move(options), std::move(cluster));
}
