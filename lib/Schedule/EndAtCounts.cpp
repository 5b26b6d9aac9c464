//===- EndAtCounts.cpp - End loops where results do -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets loops end where nobody needs more. The lengths of a run say that for all steps. Counts that a run computes say
// it for kernels that make outputs.
//
//===----------------------------------------------------------------------===//

#include "EndAnalysis.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Schedule/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_ENDATCOUNTS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// Ends the launches of one program.
class LaunchEnder {
public:
  LaunchEnder(plan::ProgramOp program, SymbolTable &symbols) : program(program), symbols(symbols) {}

  void run();

private:
  /// Ends the loops of `step` where runs need no more of its result.
  void endAtLengths(plan::StepOpInterface step, const EndAnalysis &analysis);
  /// The only step that writes to the buffer of `output`, if it is the launch of a kernel that may end.
  plan::LaunchOp findLaunch(plan::OutputOp output);
  void end(plan::LaunchOp launch, ArrayRef<int64_t> counts);
  /// The kernel of `launch`, which no other launch is of.
  plan::KernelOp getOwnKernel(plan::LaunchOp launch);

  plan::ProgramOp program;
  SymbolTable &symbols;
  /// Of inputs, then of outputs, as `dovetail.counts` numbers them.
  SmallVector<Value> counts;
};

struct EndAtCounts : dovetail::impl::EndAtCountsBase<EndAtCounts> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      LaunchEnder(program, symbols).run();
  }
};

} // namespace

plan::LaunchOp LaunchEnder::findLaunch(plan::OutputOp output) {
  plan::BufferOp buffer = plan::getBufferOp(output.getRef());
  // Another output may have another count, or none.
  if (llvm::count_if(program.getBlock()->getOps<plan::OutputOp>(),
                     [&](plan::OutputOp other) { return plan::getBufferOp(other.getRef()) == buffer; }) != 1)
    return nullptr;
  plan::LaunchOp found;
  for (auto step : program.getBlock()->getOps<plan::StepOpInterface>()) {
    auto isOfBuffer = [&](Value ref) { return plan::getBufferOp(ref) == buffer; };
    // Others need all of it.
    if (llvm::any_of(step.getStepReads(), isOfBuffer))
      return nullptr;
    if (llvm::none_of(step.getStepWrites(), isOfBuffer))
      continue;
    auto launch = dyn_cast<plan::LaunchOp>(*step);
    if (found || !launch || launch.getWrites().size() != 1)
      return nullptr;
    found = launch;
  }
  return found;
}

plan::KernelOp LaunchEnder::getOwnKernel(plan::LaunchOp launch) {
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  bool isShared = llvm::any_of(program.getBlock()->getOps<plan::LaunchOp>(), [&](plan::LaunchOp other) {
    return other != launch && other.getKernel() == launch.getKernel();
  });
  if (!isShared)
    return kernel;
  plan::KernelOp copy = kernel.clone();
  symbols.insert(copy, kernel->getIterator());
  launch.setKernel(copy.getSymName());
  return copy;
}

void LaunchEnder::end(plan::LaunchOp launch, ArrayRef<int64_t> bounds) {
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  auto root = kernel.getYield().getValues().front().getDefiningOp<DefinitionOpInterface>();
  // A kernel that reports extents must run, though nobody needs its results.
  if (kernel.getInPlace() || !root || checksExtents(kernel))
    return;
  Definition definition = root.getDefinition();
  auto countType = RankedTensorType::get({}, IntegerType::get(launch.getContext(), 64));
  auto isCount = [&](Value ref) {
    RankedTensorType type = cast<plan::RefType>(ref.getType()).getTensor();
    return type.getRank() == 0 && type.getElementType() == countType.getElementType();
  };
  // Lines are gone through by what writes them, and elements of a scan may come from its end.
  auto mayEnd = [&](int64_t dim) {
    if (bounds[dim] < 0 || cast<plan::LoopAttr>(launch.getLoops()[dim]).getEnd() ||
        definition.loops[dim].kind != LoopKind::Parallel || !isCount(counts[bounds[dim]]))
      return false;
    return llvm::all_of(program.getBlock()->getOps<plan::StepOpInterface>(), [&](plan::StepOpInterface step) {
      return step->isBeforeInBlock(launch) || llvm::none_of(step.getStepWrites(), [&](Value ref) {
               return plan::getBufferOp(ref) == plan::getBufferOp(counts[bounds[dim]]);
             });
    });
  };
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::make_filter_range(llvm::seq<int64_t>(0, static_cast<int64_t>(bounds.size())), mayEnd));
  if (dims.empty())
    return;
  kernel = getOwnKernel(launch);
  SmallVector<int64_t> arguments(bounds.size(), -1), staticLoops;
  SmallVector<Attribute> layouts(kernel.getLayouts().getValue());
  for (int64_t dim : dims) {
    plan::BufferOp buffer = plan::getBufferOp(counts[bounds[dim]]);
    arguments[dim] = kernel.getArguments().size();
    kernel.getBlock()->addArgument(countType, launch.getLoc());
    layouts.push_back(plan::LayoutAttr::getFor(buffer.getFormat(), buffer.getTensorType()));
    launch.getReadsMutable().append(counts[bounds[dim]]);
  }
  for (int64_t loop : kernel.getStaticLoops())
    if (loop >= static_cast<int64_t>(arguments.size()) || arguments[loop] < 0)
      staticLoops.push_back(loop);
  kernel.setLayoutsAttr(ArrayAttr::get(launch.getContext(), layouts));
  kernel.setStaticLoops(staticLoops);
  kernel.setCounts(arguments);
}

void LaunchEnder::endAtLengths(plan::StepOpInterface step, const EndAnalysis &analysis) {
  Builder builder(step->getContext());
  SmallVector<Attribute> loops(step->getAttrOfType<ArrayAttr>("loops").getValue());
  llvm::SmallDenseSet<int64_t> ended;
  for (auto [number, end] : llvm::enumerate(analysis.getLoopEnds(step))) {
    if (!end.hasForm())
      continue;
    const EndForm &form = end.getForm();
    auto attribute = plan::EndAttr::get(step->getContext(), form.factors, form.added, form.divisor,
                                        std::max<int64_t>(form.least.value_or(0), 0), end.getStep(), end.getBeyond());
    loops[number] = cast<plan::LoopAttr>(loops[number]).withEnd(attribute);
    ended.insert(static_cast<int64_t>(number));
  }
  if (ended.empty())
    return;
  step->setAttr("loops", builder.getArrayAttr(loops));
  auto launch = dyn_cast<plan::LaunchOp>(*step);
  if (!launch)
    return;
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  auto isEnded = [&](int64_t loop) { return ended.contains(loop); };
  if (llvm::none_of(kernel.getStaticLoops(), isEnded))
    return;
  kernel = getOwnKernel(launch);
  SmallVector<int64_t> rest;
  llvm::copy_if(kernel.getStaticLoops(), std::back_inserter(rest), [&](int64_t loop) { return !isEnded(loop); });
  kernel.setStaticLoops(rest);
}

void LaunchEnder::run() {
  if (EndAnalysis analysis(program, symbols); analysis.run())
    for (auto step : program.getBlock()->getOps<plan::StepOpInterface>())
      if (mayEnd(step))
        endAtLengths(step, analysis);
  counts = getCounts(program);
  for (auto output : program.getBlock()->getOps<plan::OutputOp>())
    if (auto bounds = output->getAttrOfType<DenseI64ArrayAttr>(kCountsAttrName))
      if (plan::LaunchOp launch = findLaunch(output))
        end(launch, bounds);
}
