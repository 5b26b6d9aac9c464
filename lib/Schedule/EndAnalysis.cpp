//===- EndAnalysis.cpp - What runs need of values -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how needs go from results of steps to operands, by their accesses. EndBounds.cpp bounds what is read.
//
//===----------------------------------------------------------------------===//

#include "EndAnalysis.h"
#include "dovetail/Dialect/Dovetail/IR/Positions.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;

/// Kernels of fewer elements end with their tensors: that takes less than to find out where.
static constexpr int64_t kFewElements = 1024;
/// Indices beyond are not thought of.
static constexpr int64_t kFar = int64_t(1) << 30;
/// Rounds after which needs that still grow are all of it.
static constexpr int kMaxRounds = 12;
/// Parts of a call's first loop that ends, and of others. Parts of windows and rows are multiples of units. Fewer rows
/// of a product are not worth a call.
static constexpr int64_t kFirstParts = 8, kOtherParts = 4, kWindowUnit = 4, kRowUnit = 8, kLeastRows = 16;

static SmallVector<plan::LoopAttr> getLoops(Operation *step) {
  return llvm::to_vector(step->getAttrOfType<ArrayAttr>("loops").getAsRange<plan::LoopAttr>());
}

EndAnalysis::EndAnalysis(plan::ProgramOp program, const SymbolTable &symbols) : program(program), symbols(symbols) {
  unsigned count = 0;
  for (auto input : program.getBlock()->getOps<plan::InputOp>())
    if (input->hasAttr(kCountAttrName))
      lengths[input.getRef()] = count++;
  program.walk([&](plan::ViewOp view) { views[view.getBufferOp()].push_back(view.getRef()); });
  program.walk([&](plan::StepOpInterface step) {
    for (Value write : step.getStepWrites()) {
      auto [maker, isFirst] = makers.try_emplace(write, step);
      if (!isFirst)
        maker->second = nullptr;
    }
  });
}

void EndAnalysis::add(Value ref, const Ends &ends) {
  RankedTensorType type = plan::getTensor(ref);
  Ends &known = needs.try_emplace(ref, Ends(type.getRank(), End::none())).first->second;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    End joined = End::join(known[dim], ends[dim]).within(extent);
    if (joined == known[dim])
      continue;
    known[dim] = isWidening ? End::all() : joined;
    hasChanged = true;
  }
}

void EndAnalysis::need(Value ref, ArrayRef<End> ends) {
  plan::BufferOp buffer = plan::getBufferOp(ref);
  if (!buffer || buffer.getKind() != plan::BufferKind::Arena)
    return;
  auto hasShape = [&](Value other) { return plan::getTensor(other).getShape() == buffer.getTensorType().getShape(); };
  bool isWhole = hasShape(ref) && ends.size() == buffer.getTensorType().getShape().size();
  // A view that no step makes has the elements of others.
  for (Value other : views.lookup(buffer))
    if (other == ref || !isWhole || !makers.contains(ref))
      add(other, isWhole && hasShape(other) ? Ends(ends) : Ends(plan::getTensor(other).getRank(), End::all()));
}

EndAnalysis::Ends EndAnalysis::getNeed(Value ref) const {
  plan::BufferOp buffer = plan::getBufferOp(ref);
  RankedTensorType type = plan::getTensor(ref);
  if (!buffer || buffer.getKind() != plan::BufferKind::Arena || buffer.getTensorType().getShape() != type.getShape())
    return Ends(type.getRank(), End::all());
  auto known = needs.find(ref);
  return known == needs.end() ? Ends(type.getRank(), End::none()) : known->second;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether `step`, if it is a library call, may be done in parts of dimension `dim` of its output, some of which are
/// left out.
static bool mayDivide(plan::StepOpInterface step, unsigned dim) {
  auto call = dyn_cast<plan::CallOpInterface>(*step);
  if (!call)
    return false;
  plan::BufferOp output = plan::getBufferOp(call.getOutput());
  unsigned last = plan::getTensor(call.getOutput()).getRank() - 1;
  bool mayBe = std::visit(FormVisitor{[&](const calls::ConvolutionForm &) { return dim != 1; },
                                      [&](const PoolCall &) { return dim != 1; },
                                      [&](const ProductCall &) { return dim != last; },
                                      [&](const AttentionCall &form) { return dim != last && !form.isOfParts; },
                                      [](const TransformCall &) { return false; }},
                          *call.getCallForm());
  return mayBe &&
         llvm::none_of(call.getCallOperands(), [&](Value operand) { return plan::getBufferOp(operand) == output; });
}

bool dovetail::mayEnd(plan::StepOpInterface step) {
  auto call = dyn_cast<plan::CallOpInterface>(*step);
  return isa<plan::LaunchOp>(*step) || (call && !std::holds_alternative<TransformCall>(*call.getCallForm()));
}

int64_t dovetail::getCallStep(plan::StepOpInterface call, unsigned dim, ArrayRef<End> needs) {
  Value output = call.getStepWrites().front();
  plan::BufferOp buffer = plan::getBufferOp(output);
  if (!buffer || !mayDivide(call, dim))
    return 1;
  plan::LoopAttr loop = getLoops(call)[dim];
  int64_t extent = loop.isSplit() ? 0 : loop.getExtent();
  for (layout::Interval piece : loop.getDim().getIntervals())
    extent = std::max(extent, piece.size());
  auto ends = [&](int other) { return needs[other].hasForm() && mayDivide(call, other); };
  layout::MemoryFormat format = buffer.getFormat().toLayout();
  bool isFirst = *llvm::find_if(format.order, ends) == static_cast<int>(dim);
  int64_t unit = 1, least = 1;
  bool isRow = dim + 2 == needs.size();
  auto ofRows = [&] {
    if (!isRow)
      return;
    unit = kRowUnit;
    least = kLeastRows;
  };
  std::visit(FormVisitor{[&](const calls::ConvolutionForm &form) {
                           if (dim >= 2)
                             unit = std::lcm(kWindowUnit, form.isTransposed ? form.windows[dim - 2].stride : 1);
                         },
                         [&](const PoolCall &) { unit = dim >= 2 ? kWindowUnit : 1; },
                         [&](const ProductCall &) { ofRows(); }, [&](const AttentionCall &) { ofRows(); },
                         [](const TransformCall &) {}},
             *cast<plan::CallOpInterface>(*call).getCallForm());
  int64_t step = llvm::alignTo(llvm::divideCeil(extent, isFirst ? kFirstParts : kOtherParts), unit);
  step = std::max(step, least);
  return step < extent ? step : 1;
}

SmallVector<Value> dovetail::getCounts(plan::ProgramOp program) {
  SmallVector<Value> counts;
  auto add = [&](auto op) {
    if (op->hasAttr(kCountAttrName))
      counts.push_back(op.getRef());
  };
  llvm::for_each(program.getBlock()->getOps<plan::InputOp>(), add);
  llvm::for_each(program.getBlock()->getOps<plan::OutputOp>(), add);
  return counts;
}

bool dovetail::checksExtents(plan::KernelOp kernel) {
  return llvm::any_of(*kernel.getBlock(), [](Operation &op) {
    auto positions = op.getAttrOfType<IntegerAttr>(kPositionsAttrName);
    return positions && positions.getInt() <= kDifferencePositions;
  });
}

EndAnalysis::Ends EndAnalysis::getLoopEnds(plan::StepOpInterface step) const {
  if (auto launch = dyn_cast<plan::LaunchOp>(*step)) {
    auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
    ArrayRef<int64_t> shape = kernel.getShape();
    Ends ends(shape.size(), End::none());
    for (Value write : launch.getWrites())
      for (auto [end, own] : llvm::zip(ends, getNeed(write)))
        end = End::join(end, own);
    bool isSmall = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()) < kFewElements;
    for (Value value : kernel.getYield().getValues()) {
      auto root = value.getDefiningOp<DefinitionOpInterface>();
      std::optional<Definition> definition;
      if (root && !isSmall)
        definition = root.getDefinition();
      for (auto [dim, end] : llvm::enumerate(ends))
        // Lines are gone through by what writes them, and elements of a scan may come from its end.
        if (!definition || definition->loops[dim].kind != LoopKind::Parallel || definition->isLine(dim))
          end = end.isNone() ? end : End::all();
    }
    // One iteration suffices to report.
    if (checksExtents(kernel))
      for (End &end : ends)
        if (end.hasForm())
          end = End::join(end, End::at(EndForm::constant(1)));
    return ends;
  }
  Ends ends = getNeed(step.getStepWrites().front());
  SmallVector<int64_t> steps;
  for (unsigned dim = 0; dim < ends.size(); ++dim)
    steps.push_back(ends[dim].hasForm() ? getCallStep(step, dim, ends) : 1);
  for (auto [end, grid] : llvm::zip(ends, steps))
    if (end.hasForm())
      end = grid == 1 ? End::all() : end.roundedUp(grid);
  return ends;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

std::optional<EndForm> EndAnalysis::getLast(const layout::IndexExpr &index, ArrayRef<End> loops,
                                            ArrayRef<layout::Interval> ranges) const {
  std::optional<EndForm> sum = EndForm::constant(index.getConstant());
  for (const layout::IndexExpr::Term &term : index.getTerms()) {
    std::optional<EndForm> part;
    layout::Interval values = term.bounds(ranges);
    bool isKnown = values.lo > -kFar && values.hi < kFar;
    bool isLoop = term.kind == layout::IndexExpr::Kind::Loop;
    if (term.factor < 0) {
      if (isKnown)
        part = EndForm::constant(values.lo * term.factor);
    } else if (isLoop && loops[term.number].hasForm()) {
      part = loops[term.number].getPlain();
      part = part ? part->plus(-1) : part;
      part = part ? part->times(term.factor) : part;
    } else if (term.kind == layout::IndexExpr::Kind::Quotient) {
      part = getLast(term.getOperand(), loops, ranges);
      part = part ? part->dividedBy(term.divisor) : part;
      part = part ? part->times(term.factor) : part;
    } else if (term.kind == layout::IndexExpr::Kind::Unknown && term.hasOperand() && isKnown) {
      // A line above the table.
      ArrayRef<int64_t> last(term.getLast().data(), term.getLast().size());
      int64_t rise = std::max<int64_t>(last.back() - last.front(), 0), steps = std::max<int64_t>(last.size() - 1, 1);
      int64_t above = last.front();
      for (auto [place, value] : llvm::enumerate(last))
        above = std::max(above, value - static_cast<int64_t>(place) * rise / steps);
      part = getLast(term.getOperand(), loops, ranges);
      part = part ? EndForm::join(*part, EndForm::constant(0)) : part;
      part = part ? part->times(rise) : part;
      part = part ? part->dividedBy(steps) : part;
      part = part ? part->plus(above) : part;
      part = part ? part->times(term.factor) : part;
    } else if (isKnown) {
      part = EndForm::constant((values.hi - 1) * term.factor);
    }
    sum = sum && part ? EndForm::add(*sum, *part) : std::nullopt;
  }
  return sum;
}

std::optional<End> EndAnalysis::getAffineNeed(const layout::IndexExpr &index, int64_t divisor, ArrayRef<End> loops,
                                              ArrayRef<layout::Interval> ranges) const {
  std::span<const layout::IndexExpr::Term> terms = index.getTerms();
  if (terms.size() == 1 && terms[0].kind == layout::IndexExpr::Kind::Quotient && terms[0].factor == 1 &&
      index.getConstant() == 0 && divisor == 1)
    return getAffineNeed(terms[0].getOperand(), terms[0].divisor, loops, ranges);
  const layout::IndexExpr::Term *along = nullptr;
  int64_t last = index.getConstant();
  for (const layout::IndexExpr::Term &term : terms) {
    bool ends = llvm::any_of(llvm::seq<int>(0, static_cast<int>(loops.size())),
                             [&](int loop) { return loops[loop].hasForm() && term.dependsOn(loop); });
    layout::Interval values = term.bounds(ranges);
    if (ends && (along || term.kind != layout::IndexExpr::Kind::Loop || term.factor < 1))
      return std::nullopt;
    if (ends)
      along = &term;
    else if (values.lo > -kFar && values.hi < kFar)
      last += term.factor < 0 ? values.lo * term.factor : (values.hi - 1) * term.factor;
    else
      return std::nullopt;
  }
  return along ? std::optional(loops[along->number].read(along->factor, last, divisor)) : std::nullopt;
}

End EndAnalysis::getNeed(const layout::AccessDim &dim, ArrayRef<End> loops, ArrayRef<layout::Interval> ranges) const {
  if (dim.border == layout::Border::Reflect || dim.border == layout::Border::Wrap)
    return End::all();
  if (std::optional<int> loop = dim.index.asLoop(); loop && dim.divisor == 1 && dim.border == layout::Border::None)
    return loops[*loop];
  if (dim.border == layout::Border::None)
    if (std::optional<End> end = getAffineNeed(dim.index, dim.divisor, loops, ranges))
      return *end;
  std::optional<EndForm> last = getLast(dim.index, loops, ranges);
  if (last && dim.divisor != 1)
    last = last->dividedBy(dim.divisor);
  if (last && dim.border == layout::Border::Edge)
    last = EndForm::join(*last, EndForm::constant(dim.within.lo));
  return End::at(last ? last->plus(1) : last);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void EndAnalysis::visitOperation(DefinitionOpInterface op, DenseMap<Value, Ends> &values, plan::LaunchOp launch) {
  Definition definition = op.getDefinition();
  Ends loops(definition.loops.size(), End::all());
  Ends wanted(definition.resultRank, End::none());
  bool isWanted = false;
  for (Value result : op->getResults())
    if (auto known = values.find(result); known != values.end()) {
      isWanted = true;
      for (auto [end, own] : llvm::zip(wanted, known->second))
        end = End::join(end, own);
    }
  if (!isWanted || llvm::any_of(wanted, [](const End &end) { return end.isNone(); }))
    return;
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    if (definition.loops[dim].kind == LoopKind::Parallel && !definition.isLine(dim))
      loops[dim] = wanted[dim];
  SmallVector<layout::Interval> ranges = definition.getRanges();
  for (const DataIndex &index : definition.getDataIndices())
    if (definition.loops[index.loop].isLookup()) {
      Value given = op->getOperand(definition.reads[index.read].operand);
      std::optional<EndForm> most = isNeverNegative(given, launch) ? getMost(given, launch) : std::nullopt;
      loops[index.loop] = End::at(most ? most->plus(1) : most).within(definition.loops[index.loop].extent);
    }
  for (const Access &read : definition.reads) {
    Value operand = op->getOperand(read.operand);
    auto type = cast<RankedTensorType>(operand.getType());
    Ends ends;
    for (auto [dim, access] : llvm::enumerate(read.dims))
      ends.push_back(getNeed(access, loops, ranges).within(type.getDimSize(dim)));
    // A select by a position does not read its operand behind the count.
    auto meet = [&](int64_t dim, const std::optional<EndForm> &count) {
      if (count && dim >= 0 && type.getDimSize(dim) != 1)
        ends[dim] = End::meet(ends[dim], *count).within(type.getDimSize(dim));
    };
    if (isa<SelectOp>(op) && read.operand == 1) {
      if (auto mask = getMask(op->getOperand(0), launch))
        meet(type.getRank() - mask->first, mask->second);
    } else if (auto cleared = dyn_cast<ClearTailOp>(*op); cleared && read.operand == 0) {
      meet(static_cast<int64_t>(cleared.getAxis()), getMost(cleared.getCount(), launch));
    }
    auto [known, isNew] = values.try_emplace(operand, ends);
    if (!isNew)
      for (auto [end, own] : llvm::zip(known->second, ends))
        end = End::join(end, own);
  }
}

void EndAnalysis::visitLaunch(plan::LaunchOp launch) {
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  Ends ends = getLoopEnds(launch);
  if (llvm::any_of(ends, [](const End &end) { return end.isNone(); }))
    return;
  DenseMap<Value, Ends> values;
  for (Value value : kernel.getYield().getValues())
    values[value] = ends;
  for (Operation &op : llvm::reverse(kernel.getBlock()->without_terminator()))
    if (auto definition = dyn_cast<DefinitionOpInterface>(op))
      visitOperation(definition, values, launch);
  for (auto [argument, read] : llvm::zip(kernel.getArguments(), launch.getReads()))
    if (auto known = values.find(argument); known != values.end())
      need(read, known->second);
}

void EndAnalysis::visitCall(plan::CallOpInterface call) {
  Ends ends = getLoopEnds(call);
  if (llvm::any_of(ends, [](const End &end) { return end.isNone(); }))
    return;
  SmallVector<layout::Interval> ranges;
  for (int64_t extent : plan::getExtents(call.getLoops()))
    ranges.push_back({0, std::max<int64_t>(extent, 1)});
  Ends loops = ends;
  // Columns of a product depend on columns of its second factor alone, which may be anything if nobody reads the
  // result.
  if (std::holds_alternative<ProductCall>(*call.getCallForm()))
    loops.back() = getNeed(call.getStepWrites().front()).back();
  loops.resize(ranges.size(), End::all());
  SmallVector<Value> reads = call.getStepReads();
  size_t number = 0;
  for (auto access : call.getReads().getAsRange<plan::AccessAttr>()) {
    Ends own;
    for (const layout::AccessDim &dim : access.getDims().get())
      own.push_back(getNeed(dim, loops, ranges));
    need(reads[number++], own);
  }
  // Operands of epilogues are broadcast.
  for (; number < reads.size(); ++number) {
    int64_t rank = plan::getTensor(reads[number]).getRank();
    need(reads[number], ArrayRef(ends).take_back(rank));
  }
}

void EndAnalysis::visit(plan::StepOpInterface step) {
  auto needAll = [&](Value ref) { need(ref, Ends(plan::getTensor(ref).getRank(), End::all())); };
  TypeSwitch<Operation *>(step)
      .Case([&](plan::LaunchOp launch) { visitLaunch(launch); })
      .Case([&](plan::ReorderOp op) { need(op.getSource(), getNeed(op.getTarget())); })
      .Case([&](plan::ExchangeOp op) {
        for (auto [source, target] : llvm::zip(op.getSources(), op.getTargets()))
          need(source, getNeed(target));
      })
      .Default([&](Operation *op) {
        if (mayEnd(step))
          return visitCall(cast<plan::CallOpInterface>(op));
        for (Value read : step.getStepReads())
          needAll(read);
        // The next iteration may read all of it.
        for (Value write : step.getStepWrites())
          needAll(write);
      });
}

bool EndAnalysis::run() {
  if (lengths.empty())
    return false;
  SmallVector<std::optional<EndForm>> counts;
  for (Value ref : getCounts(program))
    counts.push_back(getMost(ref));
  for (auto output : program.getBlock()->getOps<plan::OutputOp>()) {
    Ends ends(plan::getTensor(output.getRef()).getRank(), End::all());
    if (auto bounds = output->getAttrOfType<DenseI64ArrayAttr>(kCountsAttrName))
      for (auto [dim, count] : llvm::enumerate(bounds.asArrayRef()))
        if (count >= 0)
          ends[dim] = End::at(counts[count]);
    need(output.getRef(), ends);
  }
  SmallVector<plan::StepOpInterface> steps = llvm::to_vector(program.getBlock()->getOps<plan::StepOpInterface>());
  int round = 0;
  do {
    hasChanged = false;
    isWidening = ++round > kMaxRounds;
    for (plan::StepOpInterface step : llvm::reverse(steps))
      visit(step);
  } while (hasChanged);
  return true;
}
