//===- Attributes.cpp - Attributes of the plan dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines assembly, verification and helpers of formats, layouts and post-operations.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

static ParseResult parseIntegerList(AsmParser &parser, SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion())) {
      values.push_back(LayoutAttr::dynamic);
      return success();
    }
    return parser.parseInteger(values.emplace_back());
  });
}

static void printIntegerList(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << "[";
  llvm::interleaveComma(values, printer.getStream(), [&](int64_t value) {
    if (value == LayoutAttr::dynamic)
      printer << "?";
    else
      printer << value;
  });
  printer << "]";
}

//===----------------------------------------------------------------------===//
// FormatAttr
//===----------------------------------------------------------------------===//

FormatAttr FormatAttr::getRowMajor(MLIRContext *context, unsigned rank) {
  return get(context, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
}

FormatAttr FormatAttr::getChannelsLast(MLIRContext *context, unsigned rank) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank > 2)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return get(context, order);
}

layout::MemoryFormat FormatAttr::toLayout() const { return {{getOrder().begin(), getOrder().end()}}; }

void FormatAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printIntegerList(printer, getOrder());
  printer << ">";
}

Attribute FormatAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> order;
  if (parser.parseLess() || parseIntegerList(parser, order) || parser.parseGreater())
    return {};
  return parser.getChecked<FormatAttr>(loc, parser.getContext(), ArrayRef<int64_t>(order));
}

LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> order) {
  // What is no dimension may be no `int` either.
  int64_t rank = order.size();
  layout::MemoryFormat format;
  for (int64_t dim : order)
    format.order.push_back(dim < 0 || dim > rank ? -1 : static_cast<int>(dim));
  if (std::string why; !format.verify(order.size(), &why))
    return emitError() << "order [" << order << "] " << why;
  return success();
}

//===----------------------------------------------------------------------===//
// BlocksAttr
//===----------------------------------------------------------------------===//

void BlocksAttr::print(AsmPrinter &printer) const {
  printer << "<threads = " << getThreads() << ", loops = ";
  printIntegerList(printer, getLoops());
  printer << ", steps = ";
  printIntegerList(printer, getSteps());
  printer << ", tiles = " << getTiles() << ", shared = " << getShared() << ">";
}

Attribute BlocksAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t threads = 0, tiles = 0, shared = 0;
  SmallVector<int64_t> loops, steps;
  auto parseName = [&](StringRef name) -> ParseResult {
    return failure(parser.parseKeyword(name) || parser.parseEqual());
  };
  if (parser.parseLess() || parseName("threads") || parser.parseInteger(threads) || parser.parseComma() ||
      parseName("loops") || parseIntegerList(parser, loops) || parser.parseComma() || parseName("steps") ||
      parseIntegerList(parser, steps) || parser.parseComma() || parseName("tiles") || parser.parseInteger(tiles) ||
      parser.parseComma() || parseName("shared") || parser.parseInteger(shared) || parser.parseGreater())
    return {};
  return parser.getChecked<BlocksAttr>(loc, parser.getContext(), threads, ArrayRef<int64_t>(loops),
                                       ArrayRef<int64_t>(steps), tiles, shared);
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t threads, ArrayRef<int64_t> loops,
                                 ArrayRef<int64_t> steps, int64_t tiles, int64_t shared) {
  if (threads < 1 || threads > 1024)
    return emitError() << "blocks of " << threads << " threads; devices have 1 to 1024";
  if (loops.size() != steps.size())
    return emitError() << loops.size() << " loops with " << steps.size() << " steps";
  if (llvm::any_of(steps, [](int64_t step) { return step < 1; }))
    return emitError() << "steps [" << steps << "] must be positive";
  if (tiles < 1 || shared < 0)
    return emitError() << tiles << " tiles and " << shared << " bytes of shared memory make no sense";
  return success();
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

int64_t LayoutAttr::getStride(unsigned dim) const {
  return getFormat().toLayout().strides(std::span(getExtents().data(), getExtents().size()))[dim];
}

int LayoutAttr::getInnermost(Type type) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  for (int64_t dim : llvm::reverse(getOrder()))
    if (shape[dim] != 1)
      return dim;
  return -1;
}

LayoutAttr LayoutAttr::getFor(FormatAttr format, RankedTensorType buffer) {
  SmallVector<int64_t> extents(buffer.getShape());
  if (ShardingAttr sharding = getSharding(buffer))
    for (auto [extent, dim] : llvm::zip_equal(extents, sharding.getDims()))
      if (dim.isSplit())
        extent = dynamic;
  return get(format.getContext(), format, extents);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printIntegerList(printer, getOrder());
  printer << ", ";
  printIntegerList(printer, getExtents());
  printer << ">";
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> order, extents;
  if (parser.parseLess() || parseIntegerList(parser, order) || parser.parseComma() ||
      parseIntegerList(parser, extents) || parser.parseGreater())
    return {};
  auto format = parser.getChecked<FormatAttr>(loc, parser.getContext(), ArrayRef<int64_t>(order));
  return format ? parser.getChecked<LayoutAttr>(loc, parser.getContext(), format, ArrayRef<int64_t>(extents))
                : LayoutAttr();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatAttr format,
                                 ArrayRef<int64_t> extents) {
  if (format.getRank() != extents.size())
    return emitError() << "layout orders " << format.getRank() << " dimensions, but has " << extents.size()
                       << " extents";
  for (int64_t extent : extents)
    if (extent < 0 && extent != dynamic)
      return emitError() << "layout has the extent " << extent;
  return success();
}

//===----------------------------------------------------------------------===//
// CallMemoryAttr
//===----------------------------------------------------------------------===//

LogicalResult CallMemoryAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> packed,
                                     ArrayRef<int64_t> scratch, ArrayRef<int64_t> threadScratch,
                                     ArrayRef<int64_t> threadPacked) {
  for (ArrayRef<int64_t> bytes : {packed, scratch, threadScratch, threadPacked})
    if (bytes.empty() || llvm::any_of(bytes, [](int64_t count) { return count < 0; }))
      return emitError() << "a call takes [" << bytes << "] bytes";
  return success();
}

//===----------------------------------------------------------------------===//
// EndAttr
//===----------------------------------------------------------------------===//

LogicalResult EndAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> factors,
                              int64_t /*added*/, int64_t divisor, int64_t least, int64_t step, int64_t beyond) {
  if (divisor < 1 || step < 1)
    return emitError() << "ends need a divisor and a step of at least 1";
  if (least < 0 || beyond < 0 || llvm::any_of(factors, [](int64_t factor) { return factor < 0; }))
    return emitError() << "ends need factors, `least` and `beyond` of at least 0";
  return success();
}

//===----------------------------------------------------------------------===//
// DivisionAttr
//===----------------------------------------------------------------------===//

LogicalResult DivisionAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t loop, int64_t step,
                                   int64_t grain) {
  if (loop < 0 || step < 1 || grain < step)
    return emitError() << "loop " << loop << " cannot be divided into parts of " << grain
                       << " iterations at multiples of " << step;
  return success();
}

//===----------------------------------------------------------------------===//
// PostOpAttr
//===----------------------------------------------------------------------===//

PostOpAttr PostOpAttr::get(MLIRContext *context, PostOpKind kind, float alpha, float beta) {
  Builder builder(context);
  return get(context, kind, builder.getF32FloatAttr(alpha), builder.getF32FloatAttr(beta));
}

static float valueOrZero(FloatAttr attribute) {
  return attribute ? static_cast<float>(attribute.getValueAsDouble()) : 0.0f;
}

float PostOpAttr::getAlphaValue() const { return valueOrZero(getAlpha()); }
float PostOpAttr::getBetaValue() const { return valueOrZero(getBeta()); }
