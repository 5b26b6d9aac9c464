//===- PlanSteps.cpp - What ranks do in the steps of a program ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements StepCounter and getPlanSteps.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/PlanSteps.h"

#include "ExchangeTraffic.h"
#include "KernelCounter.h"
#include "dovetail/Cost/CallWork.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;

static unsigned getBits(Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth(); }

namespace {
/// Extents of what ranks have of a tensor or of loops: each different one once, and which of them a rank has.
struct Extents {
  std::vector<std::vector<int64_t>> distinct;
  std::vector<unsigned> numberOf;
};

} // namespace

class StepCounter::Counter {
public:
  Counter(plan::ProgramOp program, layout::Mesh mesh, const Cluster &cluster, ExchangeEngine engine)
      : program(program), mesh(mesh), numRanks(mesh.numRanks()), traffic(mesh, cluster, engine) {}

  FailureOr<PlanStep> get(plan::StepOpInterface op);

private:
  /// Fills in what ranks do, from what those do that have these parts of `loops` and of tensors. Along a dimension that
  /// a loop goes along, of `reads` of a call, they read no more than they have of the loop.
  void addWorks(PlanStep &step, ArrayAttr loops, ArrayRef<Value> refs,
                llvm::function_ref<StepWork(ArrayRef<int64_t> loops, ArrayRef<double> bytes)> getWork,
                ArrayAttr reads = {});
  LogicalResult addLaunch(PlanStep &step, plan::LaunchOp op);
  void addCall(PlanStep &step, plan::CallOpInterface call);
  void addReorder(PlanStep &step, plan::ReorderOp op);

  const Extents &getExtents(ArrayAttr loops);
  const Extents &getExtents(RankedTensorType type);
  Extents getExtents(const layout::Sharding &sharding, ArrayRef<int64_t> shape) const;

  plan::ProgramOp program;
  SymbolTableCollection symbols;
  layout::Mesh mesh;
  int numRanks;
  TrafficCounter traffic;
  DenseMap<Attribute, Extents> loopExtents;
  DenseMap<Type, Extents> tensorExtents;
  DenseMap<Operation *, std::unique_ptr<KernelCounter>> kernels;
};

//===----------------------------------------------------------------------===//
// Parts of ranks
//===----------------------------------------------------------------------===//

Extents StepCounter::Counter::getExtents(const layout::Sharding &sharding, ArrayRef<int64_t> shape) const {
  Extents result;
  std::map<std::vector<int64_t>, unsigned> numbers;
  for (int rank = 0; rank < numRanks; ++rank) {
    std::vector<int64_t> extents = sharding.boxOf(mesh, {shape.data(), shape.size()}, rank).shape();
    auto [entry, isNew] = numbers.try_emplace(extents, result.distinct.size());
    if (isNew)
      result.distinct.push_back(std::move(extents));
    result.numberOf.push_back(entry->second);
  }
  return result;
}

const Extents &StepCounter::Counter::getExtents(ArrayAttr loops) {
  auto [entry, isNew] = loopExtents.try_emplace(loops);
  if (isNew) {
    SmallVector<int64_t> extents = plan::getExtents(loops);
    entry->second = getExtents(toLayout(plan::getDims(loops), mesh), extents);
  }
  return entry->second;
}

const Extents &StepCounter::Counter::getExtents(RankedTensorType type) {
  auto [entry, isNew] = tensorExtents.try_emplace(type);
  if (isNew)
    entry->second = getExtents(toLayout(getSharding(type), mesh, type.getRank()), type.getShape());
  return entry->second;
}

static double getProduct(ArrayRef<int64_t> extents) {
  double product = 1;
  for (int64_t extent : extents)
    product *= double(extent);
  return product;
}

void StepCounter::Counter::addWorks(PlanStep &step, ArrayAttr loops, ArrayRef<Value> refs,
                                    llvm::function_ref<StepWork(ArrayRef<int64_t>, ArrayRef<double>)> getWork,
                                    ArrayAttr reads) {
  // References into the maps do not outlive another look-up.
  if (loops)
    getExtents(loops);
  for (Value ref : refs)
    getExtents(plan::getTensor(ref));
  const Extents *ranges = loops ? &getExtents(loops) : nullptr;
  SmallVector<const Extents *> tensors;
  for (Value ref : refs)
    tensors.push_back(&getExtents(plan::getTensor(ref)));
  step.works.emplace_back();
  std::map<std::vector<unsigned>, unsigned> numbers;
  for (int rank = 0; rank < numRanks; ++rank) {
    std::vector<unsigned> key;
    if (ranges)
      key.push_back(ranges->numberOf[rank]);
    for (const Extents *tensor : tensors)
      key.push_back(tensor->numberOf[rank]);
    auto [entry, isNew] = numbers.try_emplace(std::move(key), 0);
    if (isNew) {
      SmallVector<double> bytes;
      ArrayRef<int64_t> own = ranges ? ArrayRef(ranges->distinct[ranges->numberOf[rank]]) : ArrayRef<int64_t>();
      for (auto [number, ref, tensor] : llvm::enumerate(refs, tensors)) {
        std::vector<int64_t> read = tensor->distinct[tensor->numberOf[rank]];
        if (reads && number < reads.size())
          for (auto [extent, access] : llvm::zip_equal(read, cast<plan::AccessAttr>(reads[number]).getDims().get()))
            if (std::optional<int> loop = access.index.asLoop(); loop && access.divisor == 1)
              extent = std::min(extent, own[*loop]);
        bytes.push_back(getProduct(read) * double(getElementByteSize(plan::getTensor(ref).getElementType())));
      }
      StepWork work = getWork(own, bytes);
      if (work.operations > 0 || work.writtenBytes > 0) {
        entry->second = step.works.size();
        step.works.push_back(work);
      }
    }
    step.workOf.push_back(entry->second);
  }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult StepCounter::Counter::addLaunch(PlanStep &step, plan::LaunchOp op) {
  auto kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(program, op.getKernelAttr());
  if (!kernel)
    return op.emitOpError() << op.getKernelAttr() << " is not a plan.kernel";
  std::unique_ptr<KernelCounter> &counter = kernels[kernel];
  if (!counter)
    counter = std::make_unique<KernelCounter>(kernel);
  SmallVector<double> readSizes;
  for (Value read : op.getReads())
    readSizes.push_back(double(getElementByteSize(plan::getTensor(read).getElementType())));
  size_t rank = kernel.getShape().size();
  // Of kernels that reduce, rows of the largest operand are what goes by vectors; others have one loop over all rows.
  std::optional<unsigned> rows;
  if (kernel.getLoops().size() > rank)
    for (auto [number, read] : llvm::enumerate(op.getReads()))
      if (!rows || plan::getTensor(read).getNumElements() > plan::getTensor(op.getReads()[*rows]).getNumElements())
        rows = number;
  int rowDim = -1;
  if (rows)
    rowDim = kernel.getLayout(*rows).getInnermost(plan::getTensor(op.getReads()[*rows]));
  addWorks(step, op.getLoops(), SmallVector<Value>(op.getReads()),
           [&](ArrayRef<int64_t> loops, ArrayRef<double> bytes) {
             StepWork work;
             double elements = getProduct(loops.take_front(rank));
             if (elements == 0)
               return work;
             const KernelCounts &counts = counter->get(loops);
             work.operations = counts.operations;
             if (rowDim >= 0)
               work.columns = double(plan::getTensor(op.getReads()[*rows]).getDimSize(rowDim));
             work.kind = work.operations > 0 ? StepWork::Kind::Elements : StepWork::Kind::Copy;
             work.bits = 0;
             for (Value write : op.getWrites()) {
               work.bits = std::max(work.bits, getBits(plan::getTensor(write)));
               work.writtenBytes += elements * double(getElementByteSize(plan::getTensor(write).getElementType()));
             }
             // Of a table from which some rows are taken the rest is not read.
             for (auto [reads, size, held] : llvm::zip_equal(counts.reads, readSizes, bytes))
               work.readBytes += std::min(reads * size, held);
             return work;
           });
  return success();
}

void StepCounter::Counter::addCall(PlanStep &step, plan::CallOpInterface call) {
  CallForm form = *call.getCallForm();
  const calls::AlgorithmEntry *algorithm = calls::findAlgorithm(plan::toCalls(call.getAlgorithm()));
  if (algorithm && algorithm->isChoice())
    step.type = algorithm->name;
  if (auto *convolution = std::get_if<calls::ConvolutionForm>(&form); convolution && convolution->isTransposed)
    step.type = "deconvolution";
  addWorks(
      step, call.getLoops(), call.getStepReads(),
      [&](ArrayRef<int64_t> loops, ArrayRef<double> bytes) { return getCallWork(call, loops, bytes); },
      call.getReads());
}

void StepCounter::Counter::addReorder(PlanStep &step, plan::ReorderOp op) {
  addWorks(step, {}, {op.getSource(), op.getTarget()}, [&](ArrayRef<int64_t>, ArrayRef<double> bytes) {
    StepWork work;
    work.kind = StepWork::Kind::Copy;
    work.bits = getBits(plan::getTensor(op.getTarget()));
    work.readBytes = bytes[0];
    work.writtenBytes = bytes[1];
    return work;
  });
}

FailureOr<PlanStep> StepCounter::Counter::get(plan::StepOpInterface op) {
  PlanStep step;
  step.op = op;
  step.name = plan::getStepName(op).str();
  step.type = op->getName().stripDialect().str();
  LogicalResult result =
      TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](plan::LaunchOp launch) {
            step.type = "kernel";
            return addLaunch(step, launch);
          })
          .Case([&](plan::CallOpInterface call) {
            addCall(step, call);
            return success();
          })
          .Case([&](plan::ReorderOp call) {
            addReorder(step, call);
            return success();
          })
          .Case([&](plan::ExchangeOp call) {
            step.kind = PlanStep::Kind::Exchange;
            step.traffic = traffic.get(call);
            return success();
          })
          .Case<plan::WaitOp, plan::RepeatOp, plan::IfOp, plan::EndOp>([&](auto) {
            step.kind = PlanStep::Kind::Wait;
            return success();
          })
          .Default([](Operation *other) { return other->emitOpError("is a step without an estimate of its time"); });
  if (failed(result))
    return failure();
  return step;
}

StepCounter::StepCounter(plan::ProgramOp program, layout::Mesh mesh, const Cluster &cluster, ExchangeEngine engine)
    : counter(std::make_unique<Counter>(program, std::move(mesh), cluster, engine)) {}

StepCounter::~StepCounter() = default;

FailureOr<PlanStep> StepCounter::get(plan::StepOpInterface op) { return counter->get(op); }

FailureOr<PlanSteps> dovetail::getPlanSteps(plan::ProgramOp program, const Cluster &cluster, ExchangeEngine engine) {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
  if (!mesh)
    return program.emitOpError("is over ") << program.getMeshAttr() << ", which is not a dovetail.mesh";
  PlanSteps work;
  work.mesh = mesh.getMesh();
  work.engine = engine;
  StepCounter counter(program, work.mesh, cluster, engine);
  DenseMap<Value, unsigned> events;
  for (auto op : program.getBlock()->getOps<plan::StepOpInterface>()) {
    FailureOr<PlanStep> step = counter.get(op);
    if (failed(step))
      return failure();
    if (auto wait = dyn_cast<plan::WaitOp>(*op)) {
      for (Value event : wait.getComplete())
        step->complete.push_back(events.lookup(event));
      for (Value event : wait.getRead())
        step->read.push_back(events.lookup(event));
    }
    for (Value event : op->getResults())
      events[event] = work.steps.size();
    work.steps.push_back(std::move(*step));
  }
  return work;
}
