//===- Accesses.cpp - Where library calls read their operands -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines assembly and verification of accesses.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;
using layout::AccessDim;
using layout::IndexExpr;

llvm::hash_code dovetail::plan::hash_value(const AccessDims &access) {
  // Equal accesses have equal text.
  llvm::hash_code hash = llvm::hash_value(access.size());
  for (const AccessDim &dim : access.get())
    hash = llvm::hash_combine(hash, layout::str(dim));
  return hash;
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

namespace {
/// Parses what `layout::str` writes.
class AccessParser {
public:
  explicit AccessParser(AsmParser &parser) : parser(parser) {}

  ParseResult parseDim(AccessDim &dim);

private:
  ParseResult parseSum(IndexExpr &sum);
  /// A number, or what may have one as a factor.
  ParseResult parseTerm(IndexExpr &term);
  ParseResult parseAtom(IndexExpr &atom);
  /// `((x) / 2)`, with `by` in place of the slash.
  ParseResult parseDivision(function_ref<ParseResult()> by, IndexExpr &dividend, int64_t &divisor);
  ParseResult parseLimited(int64_t &number, int64_t least);

  AsmParser &parser;
  int depth = 0;
};
} // namespace

/// A number that may be in an access: products of two stay far from the end of 64 bits.
static constexpr int64_t kLimit = int64_t(1) << 40;

ParseResult AccessParser::parseLimited(int64_t &number, int64_t least) {
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseInteger(number))
    return failure();
  if (number < least || number > kLimit)
    return parser.emitError(location) << "expected a number from " << least << " to " << kLimit;
  return success();
}

ParseResult AccessParser::parseDivision(function_ref<ParseResult()> by, IndexExpr &dividend, int64_t &divisor) {
  constexpr int deepest = 16;
  if (depth == deepest)
    return parser.emitError(parser.getCurrentLocation(), "divides too many times");
  ++depth;
  if (parser.parseLParen() || parser.parseLParen() || parseSum(dividend) || parser.parseRParen() || by() ||
      parseLimited(divisor, 1) || parser.parseRParen())
    return failure();
  --depth;
  return success();
}

ParseResult AccessParser::parseAtom(IndexExpr &atom) {
  IndexExpr dividend;
  int64_t divisor;
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&keyword))) {
    if (parseDivision([&] { return parser.parseKeyword("mod"); }, dividend, divisor))
      return failure();
    atom = dividend.mod(divisor);
    return success();
  }
  if (keyword == "floor") {
    if (parseDivision([&] { return parser.parseSlash(); }, dividend, divisor))
      return failure();
    atom = dividend.floorDiv(divisor);
    return success();
  }
  unsigned loop;
  if (!keyword.consume_front("d") || keyword.getAsInteger(10, loop) || loop > 255)
    return parser.emitError(location, "expected a loop, such as 'd0', or 'floor'");
  atom = IndexExpr::loop(static_cast<int>(loop));
  return success();
}

ParseResult AccessParser::parseTerm(IndexExpr &term) {
  int64_t factor;
  SMLoc location = parser.getCurrentLocation();
  OptionalParseResult number = parser.parseOptionalInteger(factor);
  if (!number.has_value())
    return parseAtom(term);
  if (failed(*number))
    return failure();
  if (factor < -kLimit || factor > kLimit)
    return parser.emitError(location) << "expected a number from " << -kLimit << " to " << kLimit;
  if (failed(parser.parseOptionalStar())) {
    term = factor;
    return success();
  }
  if (parseAtom(term))
    return failure();
  term = term * factor;
  return success();
}

ParseResult AccessParser::parseSum(IndexExpr &sum) {
  bool isNegative = succeeded(parser.parseOptionalMinus());
  sum = IndexExpr();
  while (true) {
    IndexExpr term;
    if (parseTerm(term))
      return failure();
    sum = isNegative ? sum - term : sum + term;
    isNegative = succeeded(parser.parseOptionalMinus());
    if (!isNegative && failed(parser.parseOptionalPlus()))
      return success();
  }
}

ParseResult AccessParser::parseDim(AccessDim &dim) {
  if (failed(parser.parseOptionalKeyword("exact")))
    return parseSum(dim.index);
  return parseDivision([&] { return parser.parseSlash(); }, dim.index, dim.divisor);
}

void dovetail::plan::printAccess(AsmPrinter &printer, AccessAttr access) {
  printer << "(";
  llvm::interleaveComma(access.getDims().get(), printer.getStream(),
                        [&](const AccessDim &dim) { printer << layout::str(dim); });
  printer << ")";
}

AccessAttr dovetail::plan::parseAccess(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<AccessDim> dims;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&] { return AccessParser(parser).parseDim(dims.emplace_back()); }))
    return {};
  return parser.getChecked<AccessAttr>(location, parser.getContext(), AccessDims(dims));
}

void AccessAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAccess(printer, *this);
  printer << ">";
}

Attribute AccessAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  AccessAttr access = parseAccess(parser);
  return access && succeeded(parser.parseGreater()) ? access : AccessAttr();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Whether the numbers of an expression are those that may be written.
static bool isLimited(const IndexExpr &index) {
  auto isSmall = [](int64_t number) { return -kLimit <= number && number <= kLimit; };
  return isSmall(index.getConstant()) && llvm::all_of(index.getTerms(), [&](const IndexExpr::Term &term) {
           return isSmall(term.factor) && isSmall(term.divisor) && (!term.hasOperand() || isLimited(term.getOperand()));
         });
}

LogicalResult AccessAttr::verify(function_ref<InFlightDiagnostic()> emitError, AccessDims dims) {
  for (const AccessDim &dim : dims.get()) {
    if (dim.border != layout::Border::None)
      return emitError() << "an access by a library call has a border, " << layout::str(dim);
    if (dim.index.hasUnknown())
      return emitError() << "an access by a library call depends on data, " << layout::str(dim);
    if (!isLimited(dim.index) || dim.divisor > kLimit)
      return emitError() << "an access by a library call has a number beyond " << kLimit << ", " << layout::str(dim);
  }
  return success();
}
