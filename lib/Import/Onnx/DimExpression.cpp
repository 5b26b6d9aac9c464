//===- DimExpression.cpp - Extents that models state as expressions -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements evaluateDim by recursive descent, which computes while it reads.
//
//===----------------------------------------------------------------------===//

#include "DimExpression.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <limits>

using namespace dovetail::importer;
using llvm::StringRef;

/// More parentheses within each other, and more characters, than an exporter writes.
static constexpr int kMaxDepth = 64;
static constexpr size_t kMaxLength = 4096;

namespace {

class DimParser {
public:
  DimParser(StringRef text, llvm::function_ref<std::optional<int64_t>(StringRef)> getValue)
      : rest(text), getValue(getValue) {}

  std::optional<DimValue> run() {
    DimValue value = parseSum();
    rest = rest.ltrim();
    if (!isValid || !rest.empty())
      return std::nullopt;
    value.symbols = std::move(symbols);
    return value;
  }

private:
  bool consume(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  DimValue fail() {
    isValid = false;
    return {};
  }

  DimValue parseSum();
  DimValue parseProduct();
  DimValue parseFactor();
  DimValue parseSymbol();

  /// `a` plus `factor` times `b`.
  static DimValue add(DimValue a, const DimValue &b, int64_t factor);
  static DimValue divide(const DimValue &a, const DimValue &b);

  StringRef rest;
  llvm::function_ref<std::optional<int64_t>(StringRef)> getValue;
  llvm::SmallVector<StringRef> symbols;
  bool isValid = true;
  int depth = 0;
};

} // namespace

DimValue DimParser::add(DimValue a, const DimValue &b, int64_t factor) {
  a.isSum &= b.isSum;
  auto accumulate = [&](int64_t &sum, int64_t term) {
    int64_t product;
    a.isSum &= !llvm::MulOverflow(term, factor, product) && !llvm::AddOverflow(sum, product, sum);
  };
  accumulate(a.constant, b.constant);
  for (auto [symbol, times] : b.factors) {
    accumulate(a.factors[symbol], times);
    if (a.factors[symbol] == 0)
      a.factors.erase(symbol);
  }
  return a;
}

DimValue DimParser::divide(const DimValue &a, const DimValue &b) {
  DimValue result;
  bool overflows = a.constant == std::numeric_limits<int64_t>::min() && b.constant == -1;
  result.isSum = a.isConstant() && b.isConstant() && b.constant != 0 && !overflows;
  if (result.isSum)
    result.constant = llvm::divideFloorSigned(a.constant, b.constant);
  return result;
}

DimValue DimParser::parseSymbol() {
  auto isPartOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  // Exporters write "s0 - 1" of a difference; "x-1" may be the name of the second of several.
  size_t size = 0;
  while (size < rest.size() && (isPartOfName(rest[size]) || (size > 0 && rest[size] == '-' && size + 1 < rest.size() &&
                                                             isPartOfName(rest[size + 1]))))
    ++size;
  StringRef name = rest.take_front(size);
  rest = rest.drop_front(size);
  DimValue value;
  if (llvm::isDigit(name.front())) {
    if (name.getAsInteger(10, value.constant))
      return fail();
    return value;
  }
  if (!llvm::is_contained(symbols, name))
    symbols.push_back(name);
  if (std::optional<int64_t> known = getValue(name))
    value.constant = *known;
  else
    value.factors[name] = 1;
  return value;
}

DimValue DimParser::parseFactor() {
  if (depth == kMaxDepth)
    return fail();
  llvm::SaveAndRestore<int> deeper(depth, depth + 1);
  if (consume("-"))
    return add({}, parseFactor(), -1);
  if (consume("(")) {
    DimValue value = parseSum();
    return consume(")") ? value : fail();
  }
  bool isName = !rest.empty() && (llvm::isAlnum(rest.front()) || rest.front() == '_');
  return isName ? parseSymbol() : fail();
}

DimValue DimParser::parseProduct() {
  DimValue value = parseFactor();
  while (isValid) {
    if (consume("//")) {
      value = divide(value, parseFactor());
    } else if (consume("*")) {
      DimValue other = parseFactor();
      bool isScaled = other.isConstant() || value.isConstant();
      value = other.isConstant() ? add({}, value, other.constant) : add({}, other, value.constant);
      value.isSum &= isScaled;
    } else {
      break;
    }
  }
  return value;
}

DimValue DimParser::parseSum() {
  DimValue value = parseProduct();
  while (isValid) {
    if (consume("+"))
      value = add(value, parseProduct(), 1);
    else if (consume("-"))
      value = add(value, parseProduct(), -1);
    else
      break;
  }
  return value;
}

std::optional<DimValue>
dovetail::importer::evaluateDim(StringRef text, llvm::function_ref<std::optional<int64_t>(StringRef)> getValue) {
  if (text.size() > kMaxLength)
    return std::nullopt;
  return DimParser(text, getValue).run();
}
