//===- RestoreRows.cpp - Compute rows in the dimensions of their neighbours -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Drops reshapes around operations that do the same for each row, by doing these in the dimensions that rows have
// before or behind them.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "PlainLoops.h"
#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

#include <tuple>

namespace dovetail {
#define GEN_PASS_DEF_RESTOREROWS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

using Extents = SmallVector<int64_t>;

//===----------------------------------------------------------------------===//
// Operations on rows
//===----------------------------------------------------------------------===//

namespace {
/// How an operation on rows reads an operand.
enum class Role {
  Rows,    ///< Each row of the result reads the same row.
  Shared,  ///< All rows read the same.
  Aligned, ///< A constant that is broadcast along some dimensions of rows.
};
} // namespace

/// The dimensions before the last one, of which elements are rows.
static ArrayRef<int64_t> getRows(Operation *op) { return shapeOf(op->getResult(0)).drop_back(); }

/// How `op` reads its operands, if it does the same for each row of its result. None for other operations, for those
/// with attributes that may number dimensions, and where there is one row.
static std::optional<SmallVector<Role>> findRoles(Operation *op) {
  auto definitionOp = dyn_cast<SplitOpInterface>(op);
  bool isElementwise = op->hasTrait<dovetail::Elementwise>();
  if (!definitionOp || op->getNumResults() != 1 || isa<ReshapeOp>(op) ||
      (!isElementwise && !op->getAttrDictionary().empty()) || definitionOp.getLoopShardings())
    return std::nullopt;
  RankedTensorType type = typeOf(op->getResult(0));
  if (type.getRank() < 2 || ShapedType::getNumElements(getRows(op)) <= 1 || type.getNumElements() == 0)
    return std::nullopt;
  ArrayRef<int64_t> rows = getRows(op);
  SmallVector<bool> readsRows(op->getNumOperands(), true), isShared(op->getNumOperands(), true);
  Definition definition = definitionOp.getDefinition();
  for (auto [loop, extent] : llvm::enumerate(rows)) {
    if (extent == 1)
      continue;
    std::optional<SmallVector<int64_t>> dims = findPlainDims(definitionOp, definition, loop);
    if (!dims)
      return std::nullopt;
    for (auto [number, dim] : llvm::enumerate(*dims)) {
      readsRows[number] &= dim == static_cast<int64_t>(loop);
      isShared[number] &= dim == -1;
    }
  }
  SmallVector<Role> roles;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (isShared[number])
      roles.push_back(Role::Shared);
    else if (readsRows[number] && shapeOf(operand).take_front(rows.size()) == rows)
      roles.push_back(Role::Rows);
    else if (isElementwise && isConstantOnly(operand))
      roles.push_back(Role::Aligned);
    else
      return std::nullopt;
  }
  return llvm::is_contained(roles, Role::Rows) ? std::optional(std::move(roles)) : std::nullopt;
}

static Extents withoutOnes(ArrayRef<int64_t> extents) {
  return llvm::filter_to_vector(extents, [](int64_t extent) { return extent != 1; });
}

/// Whether dimensions `rows` are the dimensions `merged`, divided or not.
static bool divides(ArrayRef<int64_t> rows, ArrayRef<int64_t> merged) {
  Extents parts = withoutOnes(rows);
  size_t next = 0;
  for (int64_t extent : merged) {
    int64_t product = 1;
    while (product < extent && next < parts.size())
      product *= parts[next++];
    if (product != extent)
      return false;
  }
  return next == parts.size();
}

/// Whether a tensor of `shape`, with as many rows, has the same ones. If so, a cut of the rows is a cut of the tensor.
static bool hasRows(ArrayRef<int64_t> shape, ArrayRef<int64_t> rows) {
  Extents all = withoutOnes(shape), first = withoutOnes(rows);
  return all.size() >= first.size() && ArrayRef(all).take_front(first.size()) == ArrayRef(first);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

namespace {
/// Operations on rows of the same dimensions that read each other's results, or the same values.
class RowRegion {
public:
  using RolesOf = llvm::function_ref<const std::optional<SmallVector<Role>> &(Operation *)>;

  RowRegion(Operation *first, RolesOf getRoles);

  ArrayRef<Operation *> getOps() const { return ops.getArrayRef(); }
  /// Rewrites all of it for other dimensions of rows if these cost less, and erases the old operations.
  bool rewrite();

private:
  /// Where a value is read from outside, or outside.
  struct Border {
    ArrayRef<int64_t> rest;   ///< The dimensions of the value that are no rows.
    ArrayRef<int64_t> beyond; ///< The shape that it has outside.
    bool isKept;              ///< Whether the value is wanted as it is by others, too.

    /// The shape of the value where rows have dimensions `rows`.
    Extents getShape(ArrayRef<int64_t> rows) const {
      Extents shape(rows);
      llvm::append_range(shape, rest);
      return shape;
    }
  };
  /// The number of borders where dimensions that can be cut change, the number of these dimensions, and the number of
  /// reshapes. Costs are compared in this order.
  using Cost = std::tuple<int64_t, int64_t, int64_t>;

  void collect(Operation *first, RolesOf getRoles);
  void findBorders();
  Cost getCost(ArrayRef<int64_t> newRows) const;
  /// Whether `newRows` differ in ones alone, and a value that has the old ones outside would be reshaped for them.
  bool onlyMovesOnes(ArrayRef<int64_t> newRows) const;
  /// The dimensions of rows that cost least; none if these are those that they have.
  std::optional<Extents> findBest() const;
  bool isInside(Operation *op) const { return ops.contains(op); }
  bool computes(Value value) const { return value.getDefiningOp() && isInside(value.getDefiningOp()); }
  /// The shape of `value` where rows have other dimensions.
  Extents getShape(Value value, ArrayRef<int64_t> newRows) const;
  /// The operand of `op` for these, null if there is none.
  Value getOperand(OpBuilder &builder, Operation *op, unsigned number, ArrayRef<int64_t> newRows);
  Operation *copy(Operation *op, ArrayRef<int64_t> newRows);
  void replaceUses(Operation *op, Value value);

  Extents rows;
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> inputs;
  SmallVector<Border> borders;
  DenseMap<Operation *, SmallVector<Role>> roles;
  /// Values with the new dimensions.
  DenseMap<Value, Value> values;
};
} // namespace

RowRegion::RowRegion(Operation *first, RolesOf getRoles) : rows(getRows(first)) {
  collect(first, getRoles);
  findBorders();
}

void RowRegion::collect(Operation *first, RolesOf getRoles) {
  SmallVector<Operation *> left;
  auto add = [&](Operation *op) {
    if (op->getBlock() == first->getBlock() && !isInside(op) && getRoles(op) && getRows(op) == ArrayRef(rows)) {
      ops.insert(op);
      left.push_back(op);
    }
  };
  auto addUsers = [&](Value value) {
    for (OpOperand &use : value.getUses())
      if (const auto &found = getRoles(use.getOwner()); found && (*found)[use.getOperandNumber()] == Role::Rows)
        add(use.getOwner());
  };
  add(first);
  while (!left.empty()) {
    Operation *op = left.pop_back_val();
    roles[op] = *getRoles(op);
    for (auto [operand, role] : llvm::zip_equal(op->getOperands(), roles[op])) {
      if (role != Role::Rows)
        continue;
      if (Operation *producer = operand.getDefiningOp())
        add(producer);
      if (!computes(operand) && inputs.insert(operand))
        addUsers(operand);
    }
    addUsers(op->getResult(0));
  }
}

Extents RowRegion::getShape(Value value, ArrayRef<int64_t> newRows) const {
  Extents shape(newRows);
  llvm::append_range(shape, shapeOf(value).drop_front(rows.size()));
  return shape;
}

void RowRegion::findBorders() {
  auto add = [&](Value value, ReshapeOp reshape, Value beyond, bool isKept) {
    ArrayRef<int64_t> shape = shapeOf(value);
    borders.push_back({shape.drop_front(rows.size()), reshape ? shapeOf(beyond) : shape, isKept});
  };
  for (Value input : inputs) {
    if (isConstantOnly(input))
      continue;
    auto reshape = input.getDefiningOp<ReshapeOp>();
    bool isKept = !reshape || !llvm::all_of(input.getUsers(), [&](Operation *user) { return isInside(user); });
    add(input, reshape, reshape ? reshape.getOperand() : Value(), isKept);
  }
  for (Operation *op : ops) {
    Value result = op->getResult(0);
    bool isReadElsewhere = false;
    for (Operation *user : op->getUsers()) {
      if (auto reshape = dyn_cast<ReshapeOp>(user))
        add(result, reshape, reshape, /*isKept=*/false);
      else
        isReadElsewhere |= !isInside(user);
    }
    if (isReadElsewhere)
      add(result, ReshapeOp(), Value(), /*isKept=*/true);
  }
}

RowRegion::Cost RowRegion::getCost(ArrayRef<int64_t> newRows) const {
  int64_t changes = 0, reshapes = 0;
  bool isOld = newRows == ArrayRef(rows), hasOldRows = withoutOnes(newRows) == withoutOnes(rows);
  for (const Border &border : borders) {
    changes += !hasRows(border.beyond, newRows) && !(border.isKept && hasOldRows);
    reshapes += border.beyond != ArrayRef(border.getShape(newRows)) && !(border.isKept && isOld);
  }
  return {changes, static_cast<int64_t>(withoutOnes(newRows).size()), reshapes};
}

bool RowRegion::onlyMovesOnes(ArrayRef<int64_t> newRows) const {
  if (withoutOnes(newRows) != withoutOnes(rows))
    return false;
  // Reshapes that are there may cost nothing, as calls read through them; a value without one would need one.
  return llvm::any_of(borders, [&](const Border &border) {
    return border.beyond == ArrayRef(border.getShape(rows)) && border.beyond != ArrayRef(border.getShape(newRows));
  });
}

std::optional<Extents> RowRegion::findBest() const {
  int64_t count = ShapedType::getNumElements(rows);
  llvm::SmallSetVector<Extents, 4> choices;
  for (const Border &border : borders) {
    ArrayRef<int64_t> beyond = border.beyond;
    size_t size = 0;
    if (beyond.size() > border.rest.size() && beyond.take_back(border.rest.size()) == border.rest)
      size = beyond.size() - border.rest.size();
    else
      for (int64_t product = 1; product < count && size < beyond.size();)
        product *= beyond[size++];
    Extents choice(beyond.take_front(size));
    // More of them are rare, and all of them would take long.
    constexpr size_t maxChoices = 8;
    if (choices.size() < maxChoices && ShapedType::getNumElements(choice) == count && divides(choice, rows) &&
        !onlyMovesOnes(choice))
      choices.insert(choice);
  }
  Extents best = rows;
  Cost least = getCost(best);
  for (const Extents &choice : choices)
    if (Cost cost = getCost(choice); cost < least) {
      best = choice;
      least = cost;
    }
  return best != rows ? std::optional(best) : std::nullopt;
}

Value RowRegion::getOperand(OpBuilder &builder, Operation *op, unsigned number, ArrayRef<int64_t> newRows) {
  Value operand = op->getOperand(number);
  Location loc = withoutTensorName(operand.getLoc());
  switch (roles[op][number]) {
  case Role::Shared: {
    // There may be fewer dimensions than this has ones.
    int64_t surplus = typeOf(operand).getRank() - static_cast<int64_t>(newRows.size()) - 1;
    if (!op->hasTrait<dovetail::Elementwise>() || surplus <= 0)
      return operand;
    return reshapeTo(builder, loc, operand, shapeOf(operand).drop_front(surplus));
  }
  case Role::Aligned: {
    ArrayRef<int64_t> to = shapeOf(op->getResult(0));
    std::optional<Extents> shape = pullBack(alignedShape(operand, to.size()), getShape(op->getResult(0), newRows), to);
    if (!shape)
      return {};
    // Leading ones go without saying.
    ArrayRef<int64_t> least = *shape;
    while (static_cast<int64_t>(least.size()) > typeOf(operand).getRank() && least.front() == 1)
      least = least.drop_front();
    return reshapeTo(builder, loc, operand, least);
  }
  case Role::Rows:
    break;
  }
  Value &value = values[operand];
  if (!value) {
    auto reshape = operand.getDefiningOp<ReshapeOp>();
    value = reshapeTo(builder, loc, reshape ? reshape.getOperand() : operand, getShape(operand, newRows));
  }
  return value;
}

Operation *RowRegion::copy(Operation *op, ArrayRef<int64_t> newRows) {
  OpBuilder builder(op);
  SmallVector<Value> operands;
  for (unsigned number = 0; number < op->getNumOperands(); ++number) {
    operands.push_back(getOperand(builder, op, number, newRows));
    if (!operands.back())
      return nullptr;
  }
  Operation *copy = cloneOn(builder, op, operands, getShape(op->getResult(0), newRows));
  if (!copy || findRoles(copy) == roles[op])
    return copy;
  copy->erase();
  return nullptr;
}

void RowRegion::replaceUses(Operation *op, Value value) {
  OpBuilder builder(op);
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    if (!reshape)
      continue;
    if (reshape.getType() != value.getType()) {
      reshape->setOperand(0, value);
      continue;
    }
    if (StringRef name = getTensorName(reshape.getLoc()); !name.empty() && getTensorName(value.getLoc()).empty())
      value.setLoc(withTensorName(value.getLoc(), builder.getStringAttr(name)));
    reshape.getResult().replaceAllUsesWith(value);
    reshape.erase();
  }
  auto isOutside = [&](OpOperand &use) { return !isInside(use.getOwner()); };
  if (llvm::none_of(op->getResult(0).getUses(), isOutside))
    return;
  auto reshape = ReshapeOp::create(builder, op->getLoc(), op->getResult(0).getType(), value);
  op->getResult(0).replaceUsesWithIf(reshape.getResult(), isOutside);
}

bool RowRegion::rewrite() {
  std::optional<Extents> newRows = findBest();
  auto isOwn = [&](Value input) {
    auto reshape = input.getDefiningOp<ReshapeOp>();
    return reshape && computes(reshape.getOperand());
  };
  if (!newRows || llvm::any_of(inputs, isOwn))
    return false;
  SmallVector<Operation *> sorted(ops.begin(), ops.end());
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  SmallVector<Operation *> copies;
  for (Operation *op : sorted) {
    Operation *made = copy(op, *newRows);
    if (!made)
      break;
    copies.push_back(made);
    values[op->getResult(0)] = made->getResult(0);
  }
  bool isWhole = copies.size() == sorted.size();
  if (isWhole)
    for (auto [op, made] : llvm::zip_equal(sorted, copies))
      replaceUses(op, made->getResult(0));
  for (Operation *op : llvm::reverse(isWhole ? sorted : copies))
    op->erase();
  // Reshapes that nothing reads any more, of inputs or for copies.
  for (Value input : inputs)
    for (Value value : {values.lookup(input), input})
      if (auto reshape = value ? value.getDefiningOp<ReshapeOp>() : ReshapeOp(); reshape && reshape->use_empty())
        reshape.erase();
  return isWhole;
}

namespace {
struct RestoreRows : dovetail::impl::RestoreRowsBase<RestoreRows> {
  void runOnOperation() override {
    if (failed(requireUnsharded(getOperation())))
      return signalPassFailure();
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) { blocks.push_back(block); });
    // A region may cost less in other dimensions once its neighbour is rewritten.
    constexpr int maxSweeps = 4;
    for (Block *block : blocks)
      for (int sweep = 0; sweep < maxSweeps && runOnBlock(*block); ++sweep)
        continue;
  }

private:
  /// Rewrites regions next to reshapes; false if none is rewritten.
  static bool runOnBlock(Block &block);
};
} // namespace

bool RestoreRows::runOnBlock(Block &block) {
  DenseMap<Operation *, std::optional<SmallVector<Role>>> known;
  auto getRoles = [&](Operation *op) -> const std::optional<SmallVector<Role>> & {
    auto [entry, isNew] = known.try_emplace(op);
    if (isNew)
      entry->second = findRoles(op);
    return entry->second;
  };
  SmallVector<Operation *> neighbours;
  for (auto reshape : block.getOps<ReshapeOp>()) {
    if (Operation *producer = reshape.getOperand().getDefiningOp())
      neighbours.push_back(producer);
    llvm::append_range(neighbours, reshape->getUsers());
  }
  // Only operations on rows go, each with its own region.
  llvm::erase_if(neighbours, [&](Operation *op) { return op->getBlock() != &block || !getRoles(op); });
  llvm::DenseSet<Operation *> seen;
  bool isChanged = false;
  for (Operation *op : neighbours) {
    if (seen.contains(op))
      continue;
    RowRegion region(op, getRoles);
    SmallVector<Operation *> ops(region.getOps());
    seen.insert_range(ops);
    if (!region.rewrite())
      continue;
    isChanged = true;
    // Others may be given their places in memory.
    for (Operation *gone : ops)
      known.erase(gone);
  }
  return isChanged;
}
