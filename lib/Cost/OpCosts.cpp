//===- OpCosts.cpp - How long operations take -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements OpCosts.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/OpCosts.h"

#include "dovetail/Dialect/Dovetail/Definition/CountElement.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dovetail;
using calls::LoopRole;

/// True for elementwise operations that a kernel computes where it needs them.
static bool isCheapElement(Operation *op) {
  auto defined = dyn_cast<DefinitionOpInterface>(op);
  return defined && defined.isCheapElement() && !defined.getDefinition().isFold;
}

bool OpCosts::isStored(Value value) {
  Operation *op = value.getDefiningOp();
  auto defined = dyn_cast_or_null<DefinitionOpInterface>(op);
  if (!defined || !value.hasOneUse() || op->getNumResults() != 1)
    return true;
  Operation *user = *value.getUsers().begin();
  if (!isa<DefinitionOpInterface>(user))
    return true;
  // Reductions read what is computed as they go.
  bool isProduct = defined.getDefinition().isProduct;
  if (isCheapElement(op))
    return !isCheapElement(user) && !cast<DefinitionOpInterface>(user).isReduction();
  return !isProduct || !isCheapElement(user) || user->getResult(0).getType() != value.getType();
}

bool OpCosts::isFoldOfRows(DefinitionOpInterface op, const Definition &definition) {
  if (op->getNumOperands() != 1 || definition.isProduct || !op.isReduction())
    return false;
  Value operand = op->getOperand(0);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape(),
                    result = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  if (shape.size() != result.size())
    return false;
  // Rows are of the last dimensions.
  size_t first = std::mismatch(shape.begin(), shape.end(), result.begin()).first - shape.begin();
  if (llvm::any_of(result.drop_front(first), [](int64_t extent) { return extent != 1; }) ||
      ShapedType::getNumElements(shape.drop_front(first)) > plan::kMaxRow)
    return false;
  bool isReadAgain = false;
  for (Operation *user : op->getUsers()) {
    if (!isCheapElement(user))
      return false;
    ArrayRef<int64_t> own = cast<RankedTensorType>(user->getResult(0).getType()).getShape();
    if (own != shape && own != result)
      return false;
    isReadAgain |= llvm::is_contained(user->getOperands(), operand);
  }
  return isReadAgain;
}

OpCosts::OpCosts(DefinitionOpInterface op, const OpRelation &relation, const DenseSet<Value> &constants) {
  Definition definition = op.getDefinition();
  extents = dovetail::getExtents(relation.loops);
  form.kind = definition.isProduct ? StepWork::Kind::Product : StepWork::Kind::Elements;
  // How fast a product is depends on its factors.
  Value measured = definition.isProduct ? op->getOperand(0) : op->getResult(0);
  form.bits = 8 * getElementByteSize(cast<RankedTensorType>(measured.getType()).getElementType());
  for (size_t loop = relation.loops.size(); loop < definition.loops.size(); ++loop)
    inner *= static_cast<double>(definition.loops[loop].extent);
  // Of what is looked up one iteration alone counts; the terms of parts are those of the dimension.
  for (const Loop &loop : relation.loops)
    isCounted.push_back(!loop.isLookup() && loop.kind != LoopKind::Part);
  if (op->getNumOperands() > 0)
    findRoles(relation, definition, cast<RankedTensorType>(op->getOperand(0).getType()).getShape());
  if (!definition.isProduct)
    findOperations(op, definition);
  if (definition.isProduct && form.bits == 32 && constants.contains(op->getOperand(1)))
    findAlgorithms(definition);
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    Tensor tensor{static_cast<double>(getByteSize(type)), {}};
    for (auto [extent, dim] : llvm::zip_equal(type.getShape(), relation.operands[number])) {
      if (dim.loop < 0)
        continue;
      tensor.loops.push_back(dim.loop);
      // As far as it is read at all.
      if (dim.map.hasLoop() && extent > 0)
        tensor.bytes *= static_cast<double>(dim.map.needClipped({0, extents[dim.loop]}, extent).size()) /
                        static_cast<double>(extent);
    }
    if (constants.contains(operand))
      weights.push_back(tensor);
    if (isStored(operand))
      read.push_back(std::move(tensor));
  }
  isFused = true;
  for (Value result : op->getResults()) {
    Tensor tensor{static_cast<double>(getByteSize(cast<RankedTensorType>(result.getType()))), {}};
    llvm::append_range(tensor.loops, llvm::seq(definition.resultRank));
    results.push_back(tensor);
    if (!isStored(result))
      continue;
    isFused = false;
    written.push_back(std::move(tensor));
  }
  if (isFoldOfRows(op, definition))
    llvm::append_range(rowLoops, llvm::seq<unsigned>(definition.resultRank, extents.size()));
}

bool OpCosts::isPartOfReader(ArrayRef<int64_t> sizes) const {
  return isFused ||
         (!rowLoops.empty() && llvm::all_of(rowLoops, [&](unsigned loop) { return sizes[loop] == extents[loop]; }));
}

void OpCosts::findAlgorithms(const Definition &definition) {
  std::optional<CallForm> call = classify(definition);
  const auto *convolution = call ? std::get_if<calls::ConvolutionForm>(&*call) : nullptr;
  for (const calls::AlgorithmEntry &algorithm : calls::getAlgorithms())
    if (convolution && algorithm.isChoice() && algorithm.applies(*convolution))
      algorithms.push_back(&algorithm);
}

void OpCosts::findRoles(const OpRelation &relation, const Definition &definition, ArrayRef<int64_t> shape) {
  roles.assign(extents.size(), LoopRole::Batch);
  if (!definition.isProduct)
    return;
  calls::ContractionRoles found = definition.getRoles();
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    roles[loop] = found[loop];
    columnsOfGroup *= static_cast<double>(found.getGroupColumns(loop));
  }
  // Each element of the first operand meets each tap once at most: of a transposed convolution most do not meet.
  for (auto [dim, extent] : llvm::zip_equal(relation.operands[0], shape))
    if (dim.loop >= 0 && roles[dim.loop] == LoopRole::Row && extent < extents[dim.loop])
      met *= static_cast<double>(extent) / static_cast<double>(extents[dim.loop]);
}

void OpCosts::findOperations(DefinitionOpInterface op, const Definition &definition) {
  SmallVector<int64_t> ends;
  double elements = 1, iterations = inner;
  for (auto [number, loop] : llvm::enumerate(definition.loops)) {
    ends.push_back(loop.kind == LoopKind::Part && loop.ends.size() > 1
                       ? (loop.ends.back() - loop.ends.front()) / static_cast<int64_t>(loop.ends.size() - 1)
                       : loop.extent);
    if (number < definition.resultRank && !definition.isLine(number))
      elements *= static_cast<double>(loop.extent);
    if (number < isCounted.size() && isCounted[number])
      iterations *= static_cast<double>(loop.extent);
  }
  if (iterations > 0)
    operationsOfIteration = elements * countElement(op, definition, ends) / iterations;
}

double OpCosts::getBytes(const Tensor &tensor, ArrayRef<int64_t> sizes) const {
  double bytes = tensor.bytes;
  for (unsigned loop : tensor.loops)
    if (sizes[loop] != extents[loop])
      bytes *= static_cast<double>(sizes[loop]) / static_cast<double>(extents[loop]);
  return bytes;
}

StepWork OpCosts::getWork(ArrayRef<int64_t> sizes) const {
  StepWork work = form;
  double iterations = inner * met;
  for (auto [size, counts] : llvm::zip_equal(sizes, isCounted))
    if (counts || size == 0)
      iterations *= static_cast<double>(size);
  work.operations = iterations * operationsOfIteration;
  if (iterations == 0)
    return StepWork();
  if (work.kind == StepWork::Kind::Product) {
    work.depth *= inner * met;
    for (auto [size, role] : llvm::zip_equal(sizes, roles)) {
      double &extent = role == LoopRole::Row      ? work.rows
                       : role == LoopRole::Column ? work.columns
                       : role == LoopRole::Depth  ? work.depth
                                                  : work.batch;
      extent *= static_cast<double>(size);
    }
    work.columns *= columnsOfGroup;
    work.batch /= columnsOfGroup;
  }
  // What one step reads and writes on the way lies in registers and caches.
  if (!rowLoops.empty() && isPartOfReader(sizes))
    return work;
  for (const Tensor &tensor : read)
    work.readBytes += getBytes(tensor, sizes);
  for (const Tensor &tensor : written)
    work.writtenBytes += getBytes(tensor, sizes);
  return work;
}

double OpCosts::getSeconds(const Device &device, ArrayRef<int64_t> sizes) const {
  StepWork work = getWork(sizes);
  double seconds = device.getSeconds(work);
  if (device.hasAlgorithms && work.operations > 0)
    for (const calls::AlgorithmEntry *algorithm : algorithms)
      seconds = std::min(seconds, device.getSeconds(work.by(*algorithm, sizes)));
  return isPartOfReader(sizes) ? std::max(seconds - device.stepSeconds, 0.0) : seconds;
}

double OpCosts::getSeconds(const Device &device) const { return getSeconds(device, extents); }

/// Sizes of the largest pieces of loops of these extents. Loops are split over different axes, so that some rank has
/// the largest piece of each.
static SmallVector<int64_t> getLargestSizes(ArrayRef<int64_t> extents, ArrayRef<DimShardingAttr> loops) {
  SmallVector<int64_t> sizes;
  for (auto [extent, sharding] : llvm::zip_equal(extents, loops))
    sizes.push_back(sharding.getLargestSize(extent));
  return sizes;
}

/// The largest of what `measure` says of a rank and the sizes of its pieces.
static double getLargest(const Cluster &cluster, const layout::Mesh &mesh, ArrayRef<int64_t> extents,
                         ArrayRef<DimShardingAttr> loops, llvm::function_ref<double(int, ArrayRef<int64_t>)> measure) {
  if (cluster.isUniform())
    return measure(0, getLargestSizes(extents, loops));
  layout::Sharding sharding = toLayout(loops, mesh);
  double largest = 0;
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    largest = std::max(largest, measure(rank, sharding.boxOf(mesh, extents, rank).shape()));
  return largest;
}

double OpCosts::getSeconds(const Cluster &cluster, const layout::Mesh &mesh, ArrayRef<DimShardingAttr> loops) const {
  return getLargest(cluster, mesh, extents, loops,
                    [&](int rank, ArrayRef<int64_t> sizes) { return getSeconds(cluster.getDevice(rank), sizes); });
}

double OpCosts::getShare(ArrayRef<int64_t> sizes) const {
  // What is looked up counts for its owner.
  double share = 1;
  for (auto [extent, size] : llvm::zip_equal(extents, sizes))
    share *= extent == 0 ? 1 : static_cast<double>(size) / static_cast<double>(extent);
  return share;
}

double OpCosts::getLargestShare(const Cluster &cluster, const layout::Mesh &mesh,
                                ArrayRef<DimShardingAttr> loops) const {
  if (cluster.isUniform())
    return getShare(getLargestSizes(extents, loops));
  // All of it takes a device so long, with work of each kind at its speed.
  std::vector<double> seconds;
  for (const Device &device : cluster.getDevices())
    seconds.push_back(std::max(getSeconds(device), 1e-12));
  double average = 0;
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    average += 1 / seconds[rank % seconds.size()] / static_cast<double>(e);
  return getLargest(cluster, mesh, extents, loops, [&](int rank, ArrayRef<int64_t> sizes) {
    return getShare(sizes) * average * seconds[rank % seconds.size()];
  });
}

double OpCosts::getWeightBytes(ArrayRef<DimShardingAttr> loops) const {
  SmallVector<int64_t> sizes = getLargestSizes(extents, loops);
  double bytes = 0;
  for (const Tensor &tensor : weights)
    bytes += getBytes(tensor, sizes);
  return bytes;
}

double OpCosts::getResultBytes(ArrayRef<DimShardingAttr> loops) const {
  SmallVector<int64_t> sizes = getLargestSizes(extents, loops);
  double bytes = 0;
  for (const Tensor &tensor : results)
    bytes += getBytes(tensor, sizes);
  return bytes;
}
