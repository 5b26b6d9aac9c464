//===- AttentionForm.cpp - What attention is told by accesses -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the form of attention is found in accesses.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/AttentionForm.h"

#include <algorithm>
#include <numeric>

using namespace dovetail;
using namespace dovetail::calls;
using namespace dovetail::layout;

/// Products of loops and factors beyond that are no addresses.
static constexpr int64_t most = int64_t(1) << 31;
static constexpr int64_t mostAddress = int64_t(1) << 40;
/// Heads of more columns than these in all have to be a dimension.
static constexpr int64_t mostColumns = int64_t(1) << 24;

/// The greatest common divisor of `columns` and of what `index` divides loop `column` by.
static int64_t findHead(const IndexExpr &index, int column, int64_t columns) {
  for (const IndexExpr::Term &term : index.getTerms())
    if (term.hasOperand() && term.dependsOn(column)) {
      columns = std::gcd(columns, term.divisor);
      columns = findHead(term.getOperand(), column, columns);
    }
  return columns;
}

namespace {
/// The indices of one dimension of an operand.
class DimReader {
public:
  DimReader(const IndexExpr &index, std::span<const int64_t> loops, int64_t head)
      : index(index), loops(loops), column(static_cast<int>(loops.size()) - 3), head(head) {}

  /// Whether it depends on the loops as attention does. `allowed`: which loops it may depend on, besides the batch.
  bool isRead(std::span<const int> allowed) const;

private:
  int64_t at(int64_t position) const {
    std::vector<int64_t> point(loops.size());
    point[column] = position;
    return index.evaluate(point);
  }

  const IndexExpr &index;
  std::span<const int64_t> loops;
  int column;
  int64_t head;
};
} // namespace

bool DimReader::isRead(std::span<const int> allowed) const {
  auto isAllowed = [&](int loop) { return std::find(allowed.begin(), allowed.end(), loop) != allowed.end(); };
  for (int loop = 0; loop < static_cast<int>(loops.size()); ++loop) {
    if (loop == column || !index.dependsOn(loop))
      continue;
    std::optional<int64_t> factor = index.getFactor(loop);
    if (!factor || *factor < 0 || *factor >= most || (loop > column - 2 && !isAllowed(loop)))
      return false;
  }
  if (!index.dependsOn(column) || loops[column] == 0)
    return true;
  if (std::optional<int64_t> factor = index.getFactor(column))
    return *factor >= 0 && *factor < most && (isAllowed(column) || head == 1);
  if (loops[column] > mostColumns)
    return false;
  // Along the columns of a head it stays where it is, or goes on by the same step for all of them.
  auto isAddress = [](int64_t value) { return value > -mostAddress && value < mostAddress; };
  int64_t before = at(0), second = head > 1 ? at(1) : before;
  if (!isAddress(before) || !isAddress(second))
    return false;
  int64_t step = isAllowed(column) ? second - before : 0;
  if (step < 0 || step >= most)
    return false;
  for (int64_t first = 0; first < loops[column]; first += head) {
    int64_t start = at(first);
    if (start < before || !isAddress(start))
      return false;
    before = start;
    for (int64_t i = 1; i < head; ++i)
      if (at(first + i) != start + i * step)
        return false;
  }
  return true;
}

std::optional<AttentionForm> AttentionForm::find(std::span<const AccessDims> accesses, std::span<const int64_t> loops) {
  if (accesses.size() < 3 || accesses.size() > 4 || loops.size() < 4 ||
      std::any_of(loops.begin(), loops.end(), [](int64_t extent) { return extent < 0 || extent >= most; }))
    return std::nullopt;
  int count = static_cast<int>(loops.size()), row = count - 4, column = count - 3, key = count - 2, depth = count - 1;
  AttentionForm form{loops[column]};
  for (AccessDims access : accesses)
    for (const AccessDim &dim : access) {
      if (dim.divisor != 1 || dim.border != Border::None || dim.index.hasUnknown())
        return std::nullopt;
      form.columns = findHead(dim.index, column, form.columns);
    }
  const int allowed[][2] = {{row, depth}, {key, depth}, {key, column}, {row, key}};
  for (size_t number = 0; number < accesses.size(); ++number)
    for (const AccessDim &dim : accesses[number])
      if (!DimReader(dim.index, loops, form.columns).isRead(allowed[number]))
        return std::nullopt;
  return form;
}

bool dovetail::calls::staysInside(std::span<const AccessDim> access, std::span<const int64_t> shape,
                                  std::span<const int64_t> loops) {
  if (access.size() != shape.size())
    return false;
  Box all = Box::ofShape(loops);
  if (std::any_of(loops.begin(), loops.end(), [](int64_t extent) { return extent == 0; }))
    return true;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!Interval{0, shape[dim]}.contains(access[dim].need(all)))
      return false;
  return true;
}

bool dovetail::calls::mayWriteOverQueries(std::span<const AccessDims> accesses, std::span<const int64_t> loops) {
  std::optional<AttentionForm> form = AttentionForm::find(accesses, loops);
  size_t rank = loops.size() - 2;
  if (!form || accesses[0].size() != rank || form->columns != loops.back() || loops[rank - 1] > mostColumns)
    return false;
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    if (!(accesses[0][dim] == AccessDim(IndexExpr::loop(static_cast<int>(dim)))))
      return false;
  // In the place of column e of a head it reads number e of the depth.
  const IndexExpr &index = accesses[0][rank - 1].index;
  std::vector<int64_t> point(loops.size());
  for (int64_t column = 0; column < loops[rank - 1]; ++column) {
    point[rank - 1] = column;
    point.back() = column % form->columns;
    if (index.evaluate(point) != column)
      return false;
  }
  return true;
}
