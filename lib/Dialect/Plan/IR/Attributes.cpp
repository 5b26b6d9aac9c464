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

/// Checks that `order` is a permutation of [0, size).
static LogicalResult verifyOrder(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> order) {
  SmallVector<bool> seen(order.size(), false);
  for (int64_t dim : order) {
    if (dim < 0 || dim >= static_cast<int64_t>(order.size()) || seen[dim])
      return emitError() << "order [" << order << "] is not a permutation of the dimensions";
    seen[dim] = true;
  }
  return success();
}

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

void FormatAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printIntegerList(printer, getOrder());
  if (isBlocked())
    printer << ", block " << getBlockDim() << " by " << getBlock();
  printer << ">";
}

Attribute FormatAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> order;
  int64_t blockDim = -1, block = 1;
  if (parser.parseLess() || parseIntegerList(parser, order))
    return {};
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseKeyword("block") || parser.parseInteger(blockDim) || parser.parseKeyword("by") ||
        parser.parseInteger(block))
      return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<FormatAttr>(loc, parser.getContext(), ArrayRef<int64_t>(order), blockDim, block);
}

LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> order,
                                 int64_t blockDim, int64_t block) {
  if (failed(verifyOrder(emitError, order)))
    return failure();
  if (blockDim < -1 || blockDim >= static_cast<int64_t>(order.size()))
    return emitError() << "format of " << order.size() << " dimensions cannot block dimension " << blockDim;
  if (blockDim == -1 ? block != 1 : block < 1)
    return emitError() << "blocks of " << block << " elements make no sense";
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
  printer << ", items = " << getItems() << ", shared = " << getShared() << ">";
}

Attribute BlocksAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t threads = 0, items = 0, shared = 0;
  SmallVector<int64_t> loops, steps;
  auto parseName = [&](StringRef name) -> ParseResult {
    return failure(parser.parseKeyword(name) || parser.parseEqual());
  };
  if (parser.parseLess() || parseName("threads") || parser.parseInteger(threads) || parser.parseComma() ||
      parseName("loops") || parseIntegerList(parser, loops) || parser.parseComma() || parseName("steps") ||
      parseIntegerList(parser, steps) || parser.parseComma() || parseName("items") || parser.parseInteger(items) ||
      parser.parseComma() || parseName("shared") || parser.parseInteger(shared) || parser.parseGreater())
    return {};
  return parser.getChecked<BlocksAttr>(loc, parser.getContext(), threads, ArrayRef<int64_t>(loops),
                                       ArrayRef<int64_t>(steps), items, shared);
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t threads, ArrayRef<int64_t> loops,
                                 ArrayRef<int64_t> steps, int64_t items, int64_t shared) {
  if (threads < 1 || threads > 1024)
    return emitError() << "blocks of " << threads << " threads; devices have 1 to 1024";
  if (loops.size() != steps.size())
    return emitError() << loops.size() << " loops with " << steps.size() << " steps";
  if (llvm::any_of(steps, [](int64_t step) { return step < 1; }))
    return emitError() << "steps [" << steps << "] must be positive";
  if (items < 1 || shared < 0)
    return emitError() << items << " items and " << shared << " bytes of shared memory make no sense";
  return success();
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

int64_t LayoutAttr::getStride(unsigned dim) const {
  int64_t stride = 1;
  for (int64_t inner : llvm::reverse(getOrder())) {
    if (inner == dim)
      return stride;
    int64_t extent = getExtents()[inner];
    if (extent == dynamic)
      return dynamic;
    stride *= extent;
  }
  llvm_unreachable("the dimension is in the order");
}

LayoutAttr LayoutAttr::getFor(FormatAttr format, RankedTensorType buffer) {
  SmallVector<int64_t> extents(buffer.getShape());
  if (ShardingAttr sharding = getSharding(buffer))
    for (auto [extent, dim] : llvm::zip_equal(extents, sharding.getDims()))
      if (dim.isSplit())
        extent = dynamic;
  return get(format.getContext(), format.getOrder(), extents);
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
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), ArrayRef<int64_t>(order), ArrayRef<int64_t>(extents));
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> order,
                                 ArrayRef<int64_t> extents) {
  if (failed(verifyOrder(emitError, order)))
    return failure();
  if (order.size() != extents.size())
    return emitError() << "layout orders " << order.size() << " dimensions, but has " << extents.size() << " extents";
  for (int64_t extent : extents)
    if (extent < 0 && extent != dynamic)
      return emitError() << "layout has the extent " << extent;
  return success();
}

//===----------------------------------------------------------------------===//
// CallMemoryAttr
//===----------------------------------------------------------------------===//

LogicalResult CallMemoryAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> packed,
                                     ArrayRef<int64_t> scratch, ArrayRef<int64_t> threadScratch) {
  for (ArrayRef<int64_t> bytes : {packed, scratch, threadScratch})
    if (bytes.empty() || llvm::any_of(bytes, [](int64_t count) { return count < 0; }))
      return emitError() << "a call takes [" << bytes << "] bytes";
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
