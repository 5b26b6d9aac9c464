//===- Definitions.cpp - The text of definitions --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines DefinitionAttr, and how definitions are parsed, printed and verified.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/DefinitionText.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

llvm::hash_code dovetail::hash_value(const Definition &definition) {
  // Equal definitions have equal text.
  std::string text;
  llvm::raw_string_ostream os(text);
  printDefinition(os, definition, {});
  return llvm::hash_combine(text, definition.resultRank, definition.isFold, definition.isProduct,
                            ArrayRef<unsigned>(definition.lines));
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static std::optional<LoopKind> parseLoopKind(StringRef name) {
  return llvm::StringSwitch<std::optional<LoopKind>>(name)
      .Case("parallel", LoopKind::Parallel)
      .Case("reduction", LoopKind::Reduction)
      .Case("part", LoopKind::Part)
      .Case("whole", LoopKind::Whole)
      .Case("tap", LoopKind::Tap)
      .Case("scan", LoopKind::Scan)
      .Default(std::nullopt);
}

static StringRef stringifyLoopKind(LoopKind kind) {
  switch (kind) {
  case LoopKind::Parallel:
    return "parallel";
  case LoopKind::Reduction:
    return "reduction";
  case LoopKind::Part:
    return "part";
  case LoopKind::Whole:
    return "whole";
  case LoopKind::Tap:
    return "tap";
  case LoopKind::Scan:
    return "scan";
  }
  llvm_unreachable("covered switch");
}

namespace {
class DefinitionParser {
public:
  DefinitionParser(AsmParser &parser, DefinitionText &text, bool hasNames)
      : parser(parser), text(text), hasNames(hasNames) {}

  ParseResult parse();

private:
  ParseResult parseLoop();
  ParseResult parseReductionKind(Loop &loop);
  ParseResult parseRead();
  ParseResult parseWrites();
  ParseResult parseScan();
  ParseResult parsePasses();
  ParseResult parseLoopName(unsigned &loop);
  ParseResult parsePositions(SmallVectorImpl<int64_t> &positions);
  template <typename Int> ParseResult parseNumber(Int &number);

  AsmParser &parser;
  DefinitionText &text;
  bool hasNames;
};
} // namespace

template <typename Int> ParseResult DefinitionParser::parseNumber(Int &number) {
  SMLoc location = parser.getCurrentLocation();
  int64_t parsed;
  if (parser.parseInteger(parsed))
    return failure();
  if (parsed < 0 || parsed > (int64_t(1) << 16))
    return parser.emitError(location) << "expected a number of a read or operand, not " << parsed;
  number = static_cast<Int>(parsed);
  return success();
}

ParseResult DefinitionParser::parsePositions(SmallVectorImpl<int64_t> &positions) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(positions.emplace_back()); });
}

ParseResult DefinitionParser::parseLoopName(unsigned &loop) {
  SMLoc location = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  for (unsigned number = 0; number < text.definition.loops.size(); ++number)
    if (getLoopName(text.names, number) == name) {
      loop = number;
      return success();
    }
  return parser.emitError(location) << "there is no loop '" << name << "'";
}

ParseResult DefinitionParser::parseReductionKind(Loop &loop) {
  if (failed(parser.parseOptionalLParen())) {
    if (loop.kind == LoopKind::Reduction)
      text.openReductions.push_back(text.definition.loops.size() - 1);
    return success();
  }
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  loop.reduction = symbolizeReduceKind(name);
  if (!loop.reduction && name != "none")
    return parser.emitError(location) << "'" << name
                                      << "' is not a kind of reduction; expected sum, prod, max, min, "
                                         "owner or none";
  return parser.parseRParen();
}

ParseResult DefinitionParser::parseLoop() {
  SMLoc location = parser.getCurrentLocation();
  if (hasNames) {
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    if (!isLoopName(name))
      return parser.emitError(location) << "'" << name << "' cannot be the name of a loop: it is a keyword of accesses";
    if (llvm::is_contained(text.names, name))
      return parser.emitError(location) << "two loops are called '" << name << "'";
    text.names.push_back(name.str());
    if (parser.parseEqual())
      return failure();
  }
  Loop &loop = text.definition.loops.emplace_back();
  location = parser.getCurrentLocation();
  if (parser.parseInteger(loop.extent))
    return failure();
  if (loop.extent < 0)
    return parser.emitError(location) << "a loop has " << loop.extent << " iterations";
  StringRef name;
  location = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&name)))
    return success();
  std::optional<LoopKind> kind = parseLoopKind(name);
  if (!kind)
    return parser.emitError(location) << "'" << name
                                      << "' is not a kind of loop; expected parallel, reduction, part, "
                                         "whole, tap or scan";
  loop.kind = *kind;
  if (parseReductionKind(loop))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("by")) && parseNumber(loop.index))
    return failure();
  if (loop.kind != LoopKind::Part)
    return success();
  return failure(parser.parseKeyword("of") || parseLoopName(loop.dim) || parser.parseKeyword("at") ||
                 parsePositions(loop.ends));
}

ParseResult DefinitionParser::parseRead() {
  Access &read = text.definition.reads.emplace_back();
  return failure(parseNumber(read.operand) || parser.parseColon() || parseAccessDims(parser, read.dims, text.names));
}

ParseResult DefinitionParser::parseWrites() {
  return failure(parseAccessDims(parser, text.definition.writes.emplace(), text.names) || parser.parseKeyword("by") ||
                 parseNumber(text.definition.indexRead));
}

ParseResult DefinitionParser::parseScan() {
  Definition &definition = text.definition;
  Scan &scan = definition.scan.emplace();
  if (parseLoopName(scan.loop))
    return failure();
  definition.lines = {scan.loop};
  scan.restarts = {0, definition.loops[scan.loop].extent};
  if (succeeded(parser.parseOptionalKeyword("restarts"))) {
    scan.restarts.clear();
    if (parsePositions(scan.restarts))
      return failure();
  }
  scan.isReversed = succeeded(parser.parseOptionalKeyword("reversed"));
  scan.isExclusive = succeeded(parser.parseOptionalKeyword("exclusive"));
  return succeeded(parser.parseOptionalKeyword("start")) ? parseNumber(scan.start.emplace()) : success();
}

ParseResult DefinitionParser::parsePasses() {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    SMLoc location = parser.getCurrentLocation();
    StringRef name;
    Type type;
    if (parser.parseKeyword(&name) || parser.parseColon() || parser.parseType(type))
      return failure();
    std::optional<ReduceKind> kind = symbolizeReduceKind(name);
    if (!kind || kind == ReduceKind::Owner)
      return parser.emitError(location) << "'" << name << "' is not a kind of pass; expected sum, prod, max or min";
    text.definition.passes.push_back({*kind, type});
    return success();
  });
}

ParseResult DefinitionParser::parse() {
  if (parser.parseKeyword("loops") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parseLoop(); }) ||
      parser.parseKeyword("reads") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parseRead(); }))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("writes")) && parseWrites())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("scan")) && parseScan())
    return failure();
  return succeeded(parser.parseOptionalKeyword("passes")) ? parsePasses() : success();
}

ParseResult dovetail::parseDefinition(AsmParser &parser, DefinitionText &text, bool hasNames) {
  return DefinitionParser(parser, text, hasNames).parse();
}

Attribute DefinitionAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  DefinitionText text;
  Definition &definition = text.definition;
  if (parser.parseLess() || parser.parseKeyword("rank") || parser.parseInteger(definition.resultRank) ||
      parseDefinition(parser, text, /*hasNames=*/false))
    return {};
  if (succeeded(parser.parseOptionalKeyword("lines")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(definition.lines.emplace_back()); }))
    return {};
  definition.isFold = succeeded(parser.parseOptionalKeyword("fold"));
  definition.isProduct = succeeded(parser.parseOptionalKeyword("product"));
  if (parser.parseGreater())
    return {};
  return parser.getChecked<DefinitionAttr>(location, parser.getContext(), std::move(definition));
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printPositions(llvm::raw_ostream &os, ArrayRef<int64_t> positions) {
  os << "[";
  llvm::interleaveComma(positions, os);
  os << "]";
}

static void printLoop(llvm::raw_ostream &os, const Loop &loop, LoopNames names) {
  os << loop.extent;
  bool saysReduction = loop.kind == LoopKind::Reduction || loop.reduction != ReduceKind::Sum;
  if (loop.kind != LoopKind::Parallel || saysReduction)
    os << " " << stringifyLoopKind(loop.kind);
  if (saysReduction)
    os << "(" << (loop.reduction ? stringifyReduceKind(*loop.reduction) : "none") << ")";
  if (loop.isLookup())
    os << " by " << loop.index;
  if (loop.kind == LoopKind::Part) {
    os << " of " << getLoopName(names, loop.dim) << " at ";
    printPositions(os, loop.ends);
  }
}

void dovetail::printDefinition(llvm::raw_ostream &os, const Definition &definition, LoopNames names,
                               function_ref<void()> separate) {
  auto begin = [&](StringRef keyword) {
    separate ? separate() : void(os << " ");
    os << keyword << " ";
  };
  os << "loops [";
  llvm::interleaveComma(llvm::enumerate(definition.loops), os, [&](auto entry) {
    if (entry.index() < names.size())
      os << names[entry.index()] << " = ";
    printLoop(os, entry.value(), names);
  });
  os << "]";
  begin("reads");
  os << "[";
  llvm::interleaveComma(definition.reads, os, [&](const Access &read) {
    os << read.operand << " : ";
    printAccessDims(os, read.dims, names);
  });
  os << "]";
  if (definition.writes) {
    begin("writes");
    printAccessDims(os, *definition.writes, names);
    os << " by " << definition.indexRead;
  }
  if (const std::optional<Scan> &scan = definition.scan) {
    begin("scan");
    os << getLoopName(names, scan->loop);
    if (ArrayRef(scan->restarts) != ArrayRef<int64_t>{0, definition.loops[scan->loop].extent}) {
      os << " restarts ";
      printPositions(os, scan->restarts);
    }
    os << (scan->isReversed ? " reversed" : "") << (scan->isExclusive ? " exclusive" : "");
    if (scan->start)
      os << " start " << *scan->start;
  }
  if (!definition.passes.empty()) {
    begin("passes");
    os << "[";
    llvm::interleaveComma(definition.passes, os, [&](const FoldPass &pass) {
      os << stringifyReduceKind(pass.kind) << " : " << pass.elementType;
    });
    os << "]";
  }
}

void DefinitionAttr::print(AsmPrinter &printer) const {
  const Definition &definition = getDefinition();
  llvm::raw_ostream &os = printer.getStream();
  os << "<rank " << definition.resultRank << " ";
  printDefinition(os, definition, {});
  if (!definition.scan && !definition.lines.empty()) {
    os << " lines [";
    llvm::interleaveComma(definition.lines, os);
    os << "]";
  }
  os << (definition.isFold ? " fold" : "") << (definition.isProduct ? " product" : "") << ">";
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

namespace {
class DefinitionVerifier {
public:
  DefinitionVerifier(function_ref<InFlightDiagnostic()> emitError, const Definition &definition, LoopNames names)
      : emitError(emitError), definition(definition), names(names) {}

  LogicalResult verify();

private:
  LogicalResult verifyLoop(unsigned number);
  LogicalResult verifyIndex(const IndexExpr &index, const Twine &where);
  LogicalResult verifyDims(ArrayRef<AccessDim> dims, const Twine &where);
  LogicalResult verifyPositions(ArrayRef<int64_t> positions, int64_t extent, const Twine &where);
  LogicalResult verifyScan(const Scan &scan);
  InFlightDiagnostic emitAt(unsigned loop) { return emitError() << "loop '" << getLoopName(names, loop) << "' "; }

  function_ref<InFlightDiagnostic()> emitError;
  const Definition &definition;
  LoopNames names;
};
} // namespace

LogicalResult DefinitionVerifier::verifyPositions(ArrayRef<int64_t> positions, int64_t extent, const Twine &where) {
  if (positions.size() < 2 || positions.front() != 0 || positions.back() != extent || !llvm::is_sorted(positions))
    return emitError() << where << " must ascend from 0 to the extent, " << extent;
  return success();
}

LogicalResult DefinitionVerifier::verifyLoop(unsigned number) {
  const Loop &loop = definition.loops[number];
  bool isOfResult = number < definition.resultRank;
  // No program goes through more.
  constexpr int64_t mostIterations = int64_t(1) << 40;
  if (loop.extent < 0 || loop.extent > mostIterations)
    return emitAt(number) << "has " << loop.extent << " iterations; there can be 0 to " << mostIterations;
  if (isOfResult && loop.kind != LoopKind::Parallel && loop.kind != LoopKind::Whole && loop.kind != LoopKind::Scan)
    return emitAt(number) << "is a dimension of the result, and cannot be of kind " << stringifyLoopKind(loop.kind);
  if (!isOfResult && (loop.kind == LoopKind::Parallel || loop.kind == LoopKind::Scan))
    return emitAt(number) << "is not a dimension of the result, and cannot be of kind " << stringifyLoopKind(loop.kind);
  if (loop.kind != LoopKind::Tap && number > 0 && definition.loops[number - 1].kind == LoopKind::Tap)
    return emitAt(number) << "comes after a tap, but taps come last";
  if (loop.isLookup() && loop.kind != LoopKind::Reduction)
    return emitAt(number) << "is looked up, and must be a reduction";
  if (loop.isLookup() && static_cast<size_t>(loop.index) >= definition.reads.size())
    return emitAt(number) << "is looked up by read " << loop.index << ", which does not exist";
  if (loop.kind != LoopKind::Part)
    return success();
  if (loop.dim >= definition.resultRank)
    return emitAt(number) << "has parts of a loop that is not a dimension of the result";
  if (failed(verifyPositions(loop.ends, loop.extent, "the ends of parts of '" + getLoopName(names, number) + "'")))
    return failure();
  if (static_cast<int64_t>(loop.ends.size()) != definition.loops[loop.dim].extent + 1)
    return emitAt(number) << "has " << loop.ends.size() - 1 << " parts, but '" << getLoopName(names, loop.dim)
                          << "' has " << definition.loops[loop.dim].extent << " iterations";
  return success();
}

LogicalResult DefinitionVerifier::verifyIndex(const IndexExpr &index, const Twine &where) {
  for (const IndexExpr::Term &term : index.getTerms()) {
    if (term.kind == IndexExpr::Kind::Loop && static_cast<size_t>(term.number) >= definition.loops.size())
      return emitError() << where << " depends on loop d" << term.number << ", which does not exist";
    if (term.hasOperand() && failed(verifyIndex(term.getOperand(), where)))
      return failure();
  }
  return success();
}

LogicalResult DefinitionVerifier::verifyDims(ArrayRef<AccessDim> dims, const Twine &where) {
  for (const AccessDim &dim : dims)
    if (failed(verifyIndex(dim.index, where)))
      return failure();
  return verifyAccessDims(emitError, dims);
}

LogicalResult DefinitionVerifier::verifyScan(const Scan &scan) {
  if (scan.loop >= definition.resultRank || definition.loops[scan.loop].kind != LoopKind::Scan)
    return emitAt(scan.loop) << "is scanned, and must be a dimension of the result of kind scan";
  if (definition.writes || !definition.passes.empty() || definition.isFold)
    return emitError() << "a scan has no writes, no passes and no terms to fold";
  if (definition.loops.size() != definition.resultRank)
    return emitAt(definition.resultRank) << "is not a dimension of the result, which a scan cannot have";
  if (scan.start && *scan.start >= definition.reads.size())
    return emitError() << "a scan starts from read " << *scan.start << ", which does not exist";
  return verifyPositions(scan.restarts, definition.loops[scan.loop].extent, "the restarts of a scan");
}

LogicalResult DefinitionVerifier::verify() {
  if (definition.resultRank > definition.loops.size())
    return emitError() << "results have " << definition.resultRank << " dimensions, but there are "
                       << definition.loops.size() << " loops";
  for (unsigned number = 0; number < definition.loops.size(); ++number)
    if (failed(verifyLoop(number)))
      return failure();
  for (auto [number, read] : llvm::enumerate(definition.reads))
    if (failed(verifyDims(read.dims, "read " + Twine(number))))
      return failure();
  for (unsigned loop = 0; loop < definition.resultRank; ++loop)
    if (definition.loops[loop].kind == LoopKind::Scan && (!definition.scan || definition.scan->loop != loop))
      return emitAt(loop) << "is of kind scan, but nothing says how terms accumulate along it";
  if (definition.scan)
    return verifyScan(*definition.scan);
  if (llvm::any_of(definition.lines, [&](unsigned loop) { return loop >= definition.resultRank; }))
    return emitError() << "a line must go along a dimension of the result";
  if (!definition.passes.empty() && !definition.isFold)
    return emitError() << "passes need terms to fold";
  if (!definition.writes)
    return success();
  if (definition.writes->size() != definition.resultRank)
    return emitError() << "the written index has " << definition.writes->size() << " dimensions, but results have "
                       << definition.resultRank;
  if (definition.indexRead >= definition.reads.size())
    return emitError() << "read " << definition.indexRead << ", which says where to write, does not exist";
  return verifyDims(*definition.writes, "the written index");
}

LogicalResult dovetail::verifyDefinition(function_ref<InFlightDiagnostic()> emitError, const Definition &definition,
                                         LoopNames names) {
  return DefinitionVerifier(emitError, definition, names).verify();
}

LogicalResult DefinitionAttr::verify(function_ref<InFlightDiagnostic()> emitError, Definition definition) {
  return verifyDefinition(emitError, definition);
}
