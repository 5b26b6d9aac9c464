//===- GenericAssembly.cpp - The text of generics -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how GenericOp and the operations of its regions are parsed and printed.
//
//===----------------------------------------------------------------------===//

#include "GenericRegions.h"

#include "dovetail/Dialect/Dovetail/IR/DefinitionText.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Operations of regions
//===----------------------------------------------------------------------===//

ParseResult dovetail::parseLoopName(OpAsmParser &parser, StringAttr &loop) {
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  loop = parser.getBuilder().getStringAttr(name);
  return success();
}

void dovetail::printLoopName(OpAsmPrinter &printer, Operation *, StringAttr loop) { printer << loop.getValue(); }

ParseResult dovetail::parseCoordinates(OpAsmParser &parser, ArrayAttr &loops,
                                       SmallVectorImpl<OpAsmParser::UnresolvedOperand> &coordinates) {
  SmallVector<Attribute> names;
  auto parseEntry = [&]() -> ParseResult {
    StringAttr name;
    if (parseLoopName(parser, name))
      return failure();
    names.push_back(name);
    return failure(parser.parseEqual() || parser.parseOperand(coordinates.emplace_back()));
  };
  if (succeeded(parser.parseOptionalKeyword("at")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  loops = parser.getBuilder().getArrayAttr(names);
  return success();
}

void dovetail::printCoordinates(OpAsmPrinter &printer, Operation *, ArrayAttr loops, OperandRange coordinates) {
  if (loops.empty())
    return;
  printer << " at [";
  llvm::interleaveComma(llvm::zip_equal(loops.getAsRange<StringAttr>(), coordinates), printer.getStream(),
                        [&](auto entry) {
                          auto [name, coordinate] = entry;
                          printer << name.getValue() << " = " << coordinate;
                        });
  printer << "]";
}

//===----------------------------------------------------------------------===//
// Generic
//===----------------------------------------------------------------------===//

/// `(%a: f32, %b: f32) { ... }`, or without arguments.
static ParseResult parseRegion(OpAsmParser &parser, Region &region) {
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseArgumentList(arguments, OpAsmParser::Delimiter::OptionalParen, /*allowType=*/true) ||
                 parser.parseRegion(region, arguments));
}

/// The combiner: `combine sum`, or regions. Sets `kind` to null where there is none.
static ParseResult parseCombiner(OpAsmParser &parser, Region &init, Region &combine, ReduceKindAttr &kind) {
  bool hasInit = succeeded(parser.parseOptionalKeyword("init"));
  if (hasInit && parseRegion(parser, init))
    return failure();
  if (failed(parser.parseOptionalKeyword("combine")))
    return success();
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&name)))
    return parseRegion(parser, combine);
  std::optional<ReduceKind> found = symbolizeReduceKind(name);
  if (!found || found == ReduceKind::Owner)
    return parser.emitError(location) << "'" << name
                                      << "' does not combine terms; expected sum, prod, max, min or a "
                                         "region";
  kind = ReduceKindAttr::get(parser.getContext(), *found);
  return success();
}

/// The regions of passes, and of what they make.
static ParseResult parsePassRegions(OpAsmParser &parser, const Definition &definition, OperationState &state,
                                    Region &block) {
  for (size_t pass = 0; pass < definition.passes.size(); ++pass) {
    Region &term = *state.addRegion(), &found = *state.addRegion();
    if (parser.parseKeyword("pass") || parseRegion(parser, term))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("found")) && parseRegion(parser, found))
      return failure();
  }
  return succeeded(parser.parseOptionalKeyword("block")) ? parseRegion(parser, block) : success();
}

ParseResult GenericOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), location, state.operands) ||
      parser.addTypesToList(type.getResults(), state.types) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  location = parser.getCurrentLocation();
  DefinitionText text;
  if (parseDefinition(parser, text, /*hasNames=*/true))
    return failure();
  Region &init = *state.addRegion(), &combine = *state.addRegion(), &finish = *state.addRegion(),
         &block = *state.addRegion(), &body = *state.addRegion();
  ReduceKindAttr kindAttr;
  if (parseCombiner(parser, init, combine, kindAttr) ||
      (succeeded(parser.parseOptionalKeyword("finish")) && parseRegion(parser, finish)) ||
      parsePassRegions(parser, text.definition, state, block) ||
      (succeeded(parser.parseOptionalKeyword("body")) && parseRegion(parser, body)))
    return failure();

  std::optional<ReduceKind> kind = kindAttr ? std::optional(kindAttr.getValue()) : std::nullopt;
  for (unsigned loop : text.openReductions)
    text.definition.loops[loop].reduction = kind;
  auto result = type.getNumResults() > 0 ? dyn_cast<RankedTensorType>(type.getResult(0)) : RankedTensorType();
  if (!result)
    return parser.emitError(location) << "expected a result that is a ranked tensor";
  text.definition.resultRank = result.getRank();
  Definition definition =
      withFlags(std::move(text.definition), kind, type.getInputs(), type.getResults(), combine, finish, body);
  auto emitError = [&] { return parser.emitError(location); };
  if (failed(verifyDefinition(emitError, definition, text.names)))
    return failure();
  if (kindAttr)
    state.addAttribute(getKindAttrName(state.name), kindAttr);
  SmallVector<StringRef> names(text.names.begin(), text.names.end());
  state.addAttribute(getLoopNamesAttrName(state.name), parser.getBuilder().getStrArrayAttr(names));
  state.addAttribute(getStatementAttrName(state.name), DefinitionAttr::get(parser.getContext(), definition));
  return success();
}

static void printRegion(OpAsmPrinter &printer, Region &region) {
  if (region.getNumArguments() > 0) {
    printer << "(";
    llvm::interleaveComma(region.getArguments(), printer.getStream(),
                          [&](BlockArgument argument) { printer.printRegionArgument(argument); });
    printer << ")";
  }
  printer << " ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

void GenericOp::print(OpAsmPrinter &printer) {
  printer << "(" << getInputs() << ") : ";
  printer.printFunctionalType(getOperation());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getStatementAttrName(), getLoopNamesAttrName(), getKindAttrName()});
  printer.increaseIndent();
  printer.increaseIndent();
  printer.printNewline();
  printDefinition(printer.getStream(), getStatement().getDefinition(), getNames(), [&] { printer.printNewline(); });
  printer.printNewline();
  // Regions end where the operation begins.
  printer.decreaseIndent();
  printer.decreaseIndent();
  StringRef space = "";
  if (std::optional<ReduceKind> kind = getKind()) {
    printer << "combine " << stringifyReduceKind(*kind);
    space = " ";
  }
  auto print = [&](StringRef keyword, Region &region) {
    if (region.empty())
      return;
    printer << space << keyword;
    printRegion(printer, region);
    space = " ";
  };
  print("init", getInit());
  print("combine", getCombine());
  print("finish", getFinish());
  for (auto [number, region] : llvm::enumerate(getPasses()))
    print(number % 2 == 0 ? "pass" : "found", region);
  print("block", getBlockRegion());
  print("body", getBody());
}
