//===- Accesses.cpp - The text of accesses --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines AccessAttr, and how accesses are parsed, printed and verified.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/DefinitionText.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Layout/Window.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::Border;
using layout::IndexExpr;

llvm::hash_code dovetail::hash_value(const AccessDims &access) {
  // Equal accesses have equal text.
  llvm::hash_code hash = llvm::hash_value(access.size());
  for (const AccessDim &dim : access.get())
    hash = llvm::hash_combine(hash, layout::str(dim));
  return hash;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The number in a name such as `u3`.
static std::optional<unsigned> getNumber(StringRef name, StringRef prefix) {
  unsigned number;
  if (!name.consume_front(prefix) || name.getAsInteger(10, number) || number > 255)
    return std::nullopt;
  return number;
}

bool dovetail::isLoopName(StringRef name) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  bool isIdentifier = !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, isPart);
  return isIdentifier && !getNumber(name, "u") &&
         !llvm::is_contained({"floor", "mod", "exact", "edge", "reflect", "wrap"}, name);
}

std::string dovetail::getLoopName(LoopNames names, unsigned loop) {
  return loop < names.size() ? names[loop] : "d" + std::to_string(loop);
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// Parses what `printAccessDims` writes.
class AccessParser {
public:
  AccessParser(AsmParser &parser, LoopNames names) : parser(parser), names(names) {}

  ParseResult parseDim(AccessDim &dim);

private:
  ParseResult parseSum(IndexExpr &sum);
  /// A number, or what may have one as a factor.
  ParseResult parseTerm(IndexExpr &term);
  ParseResult parseAtom(IndexExpr &atom);
  ParseResult parseUnknown(unsigned number, IndexExpr &atom);
  /// `((x) / 2)`, with `by` in place of the slash.
  ParseResult parseDivision(function_ref<ParseResult()> by, IndexExpr &dividend, int64_t &divisor);
  ParseResult parseBorder(Border border, AccessDim &dim);
  ParseResult parseLimited(int64_t &number, int64_t least);
  ParseResult enter();

  AsmParser &parser;
  LoopNames names;
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

ParseResult AccessParser::enter() {
  constexpr int deepest = 16;
  if (depth == deepest)
    return parser.emitError(parser.getCurrentLocation(), "divides too many times");
  ++depth;
  return success();
}

ParseResult AccessParser::parseDivision(function_ref<ParseResult()> by, IndexExpr &dividend, int64_t &divisor) {
  if (enter() || parser.parseLParen() || parser.parseLParen() || parseSum(dividend) || parser.parseRParen() || by() ||
      parseLimited(divisor, 1) || parser.parseRParen())
    return failure();
  --depth;
  return success();
}

ParseResult AccessParser::parseUnknown(unsigned number, IndexExpr &atom) {
  atom = IndexExpr::unknown(static_cast<int>(number));
  if (failed(parser.parseOptionalLParen()))
    return success();
  IndexExpr index;
  std::vector<int64_t> first, last;
  auto parseEntry = [&]() -> ParseResult {
    if (parseLimited(first.emplace_back(), -kLimit))
      return failure();
    last.push_back(first.back());
    return failed(parser.parseOptionalKeyword("to")) ? success() : parseLimited(last.back(), -kLimit);
  };
  if (enter() || parseSum(index) || parser.parseArrow() || parser.parseCommaSeparatedList(parseEntry) ||
      parser.parseRParen())
    return failure();
  --depth;
  atom = IndexExpr::unknown(static_cast<int>(number), index, std::move(first), std::move(last));
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
  if (std::optional<unsigned> number = getNumber(keyword, "u"))
    return parseUnknown(*number, atom);
  if (!names.empty()) {
    const std::string *name = llvm::find(names, keyword);
    if (name == names.end())
      return parser.emitError(location) << "there is no loop '" << keyword << "'";
    atom = IndexExpr::loop(static_cast<int>(name - names.begin()));
    return success();
  }
  std::optional<unsigned> loop = getNumber(keyword, "d");
  if (!loop)
    return parser.emitError(location, "expected a loop, such as 'd0', or 'floor'");
  atom = IndexExpr::loop(static_cast<int>(*loop));
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

ParseResult AccessParser::parseBorder(Border border, AccessDim &dim) {
  dim.border = border;
  SMLoc location;
  if (parser.parseLParen() || parseSum(dim.index) || parser.parseComma() || parser.getCurrentLocation(&location) ||
      parseLimited(dim.within.lo, -kLimit) || parser.parseKeyword("to") || parseLimited(dim.within.hi, -kLimit) ||
      parser.parseRParen())
    return failure();
  if (dim.within.empty())
    return parser.emitError(location) << "expected an interval that is not empty, not " << dim.within.str();
  return success();
}

ParseResult AccessParser::parseDim(AccessDim &dim) {
  if (succeeded(parser.parseOptionalKeyword("exact")))
    return parseDivision([&] { return parser.parseSlash(); }, dim.index, dim.divisor);
  if (succeeded(parser.parseOptionalKeyword("edge")))
    return parseBorder(Border::Edge, dim);
  if (succeeded(parser.parseOptionalKeyword("reflect")))
    return parseBorder(Border::Reflect, dim);
  if (succeeded(parser.parseOptionalKeyword("wrap")))
    return parseBorder(Border::Wrap, dim);
  return parseSum(dim.index);
}

ParseResult dovetail::parseAccessDims(AsmParser &parser, SmallVectorImpl<AccessDim> &dims, LoopNames names) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                        [&] { return AccessParser(parser, names).parseDim(dims.emplace_back()); });
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printIndex(llvm::raw_ostream &os, const IndexExpr &index, LoopNames names) {
  bool isFirst = true;
  // The sign, and the magnitude unless a name follows 1.
  auto printFactor = [&](int64_t value, bool hasName) {
    os << (isFirst ? (value < 0 ? "-" : "") : (value < 0 ? " - " : " + "));
    isFirst = false;
    int64_t magnitude = value < 0 ? -value : value;
    if (!hasName)
      os << magnitude;
    else if (magnitude != 1)
      os << magnitude << "*";
  };
  for (const IndexExpr::Term &term : index.getTerms()) {
    printFactor(term.factor, /*hasName=*/true);
    switch (term.kind) {
    case IndexExpr::Kind::Loop:
      os << getLoopName(names, term.number);
      break;
    case IndexExpr::Kind::Unknown:
      os << "u" << term.number;
      if (!term.hasOperand())
        break;
      os << "(";
      printIndex(os, term.getOperand(), names);
      os << " -> ";
      llvm::interleaveComma(llvm::zip_equal(term.getFirst(), term.getLast()), os, [&](auto entry) {
        auto [first, last] = entry;
        os << first;
        if (first != last)
          os << " to " << last;
      });
      os << ")";
      break;
    case IndexExpr::Kind::Quotient:
    case IndexExpr::Kind::Remainder: {
      bool isQuotient = term.kind == IndexExpr::Kind::Quotient;
      os << (isQuotient ? "floor((" : "((");
      printIndex(os, term.getOperand(), names);
      os << (isQuotient ? ") / " : ") mod ") << term.divisor << ")";
      break;
    }
    }
  }
  if (index.getConstant() != 0 || isFirst)
    printFactor(index.getConstant(), /*hasName=*/false);
}

static StringRef getBorderName(Border border) {
  switch (border) {
  case Border::None:
    return "";
  case Border::Edge:
    return "edge";
  case Border::Reflect:
    return "reflect";
  case Border::Wrap:
    return "wrap";
  }
  llvm_unreachable("covered switch");
}

void dovetail::printAccessDims(llvm::raw_ostream &os, ArrayRef<AccessDim> dims, LoopNames names) {
  os << "(";
  llvm::interleaveComma(dims, os, [&](const AccessDim &dim) {
    bool isPlain = dim.border == Border::None && dim.divisor == 1;
    if (!isPlain)
      os << (dim.divisor != 1 ? "exact((" : getBorderName(dim.border).str() + "(");
    printIndex(os, dim.index, names);
    if (dim.divisor != 1)
      os << ") / " << dim.divisor << ")";
    else if (!isPlain)
      os << ", " << dim.within.lo << " to " << dim.within.hi << ")";
  });
  os << ")";
}

void dovetail::printAccess(AsmPrinter &printer, AccessAttr access) {
  printAccessDims(printer.getStream(), access.getDims().get());
}

AccessAttr dovetail::parseAccess(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<AccessDim> dims;
  if (parseAccessDims(parser, dims))
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

static bool isSmall(int64_t number) { return -kLimit <= number && number <= kLimit; }

/// Whether the numbers of an expression are those that may be written.
static bool isLimited(const IndexExpr &index) {
  return isSmall(index.getConstant()) && llvm::all_of(index.getTerms(), [&](const IndexExpr::Term &term) {
           if (!isSmall(term.factor) || !isSmall(term.divisor))
             return false;
           if (!term.hasOperand())
             return true;
           bool isTable = term.kind == IndexExpr::Kind::Unknown;
           return isLimited(term.getOperand()) &&
                  (!isTable || (llvm::all_of(term.getFirst(), isSmall) && llvm::all_of(term.getLast(), isSmall)));
         });
}

LogicalResult dovetail::verifyAccessDims(function_ref<InFlightDiagnostic()> emitError, ArrayRef<AccessDim> dims) {
  for (const AccessDim &dim : dims) {
    if (!isLimited(dim.index) || dim.divisor > kLimit || !isSmall(dim.within.lo) || !isSmall(dim.within.hi))
      return emitError() << "an access has a number beyond " << kLimit << ", " << layout::str(dim);
    if (dim.divisor < 1)
      return emitError() << "an access divides by " << dim.divisor << ", which is not positive";
    if (dim.border != Border::None && (dim.divisor != 1 || dim.within.empty()))
      return emitError() << "an access has a border around " << dim.within.str() << ", and divides by " << dim.divisor;
  }
  return success();
}

LogicalResult AccessAttr::verify(function_ref<InFlightDiagnostic()> emitError, AccessDims dims) {
  return verifyAccessDims(emitError, dims.get());
}
