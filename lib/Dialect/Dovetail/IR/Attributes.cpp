//===- Attributes.cpp - Sharding attributes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the assembly, verification and helpers of sharding attributes.
//
//===----------------------------------------------------------------------===//

#include "AttributeStorage.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// DimShardingAttr
//===----------------------------------------------------------------------===//

dovetail::detail::DimShardingAttrStorage::DimShardingAttrStorage(ArrayRef<StringAttr> axes, ArrayRef<int64_t> pieces,
                                                                 ArrayRef<layout::Interval> intervals)
    : axes(axes), pieces(pieces), intervals(intervals) {
  if (intervals.empty())
    return;
  span = intervals.front();
  for (layout::Interval piece : intervals) {
    span = {std::min(span.lo, piece.lo), std::max(span.hi, piece.hi)};
    isOrdered &= piece.lo <= piece.hi;
    largestSize = std::max(largestSize, piece.size());
    if (!piece.empty() && tiled >= 0)
      tiled = piece.lo == tiled ? piece.hi : -1;
  }
  covered = tiled >= 0 ? tiled : layout::coveredEnd(intervals);
}

dovetail::detail::DimShardingAttrStorage *
dovetail::detail::DimShardingAttrStorage::construct(AttributeStorageAllocator &allocator, const KeyTy &key) {
  auto [axes, pieces] = key;
  SmallVector<layout::Interval> intervals;
  intervals.reserve(pieces.size() / 2);
  for (size_t i = 0; i + 1 < pieces.size(); i += 2)
    intervals.push_back({pieces[i], pieces[i + 1]});
  return new (allocator.allocate<DimShardingAttrStorage>()) DimShardingAttrStorage(
      allocator.copyInto(axes), allocator.copyInto(pieces), allocator.copyInto(ArrayRef<layout::Interval>(intervals)));
}

/// True if pieces follow each other without gap or overlap, so that positions say everything.
static bool areContiguous(ArrayRef<int64_t> pieces) {
  for (size_t i = 2; i < pieces.size(); i += 2)
    if (pieces[i] != pieces[i - 1])
      return false;
  return !pieces.empty();
}

bool DimShardingAttr::isCuts() const {
  ArrayRef<int64_t> pieces = getPieces();
  return !isSplit() || (areContiguous(pieces) && pieces.front() == 0);
}

ArrayRef<StringAttr> DimShardingAttr::getAxes() const { return getImpl()->axes; }

ArrayRef<int64_t> DimShardingAttr::getPieces() const { return getImpl()->pieces; }

ArrayRef<layout::Interval> DimShardingAttr::getIntervals() const { return getImpl()->intervals; }

bool DimShardingAttr::isInside(int64_t extent) const {
  layout::Interval span = getImpl()->span;
  return getImpl()->isOrdered && span.lo >= 0 && span.hi <= extent;
}

int64_t DimShardingAttr::getLargestSize(int64_t extent) const { return isSplit() ? getImpl()->largestSize : extent; }

bool DimShardingAttr::covers(int64_t extent) const { return !isSplit() || getImpl()->covered >= extent; }

bool DimShardingAttr::coversOnce(int64_t extent) const { return !isSplit() || getImpl()->tiled == extent; }

DimShardingAttr DimShardingAttr::getUnsplit(MLIRContext *context) { return get(context, {}, {}); }

DimShardingAttr DimShardingAttr::getCuts(ArrayRef<StringAttr> axes, ArrayRef<int64_t> positions) {
  SmallVector<int64_t> pieces;
  pieces.reserve(2 * positions.size());
  for (size_t i = 0; i + 1 < positions.size(); ++i)
    pieces.append({positions[i], positions[i + 1]});
  return get(axes.front().getContext(), axes, pieces);
}

DimShardingAttr DimShardingAttr::getWindows(ArrayRef<StringAttr> axes, ArrayRef<layout::Interval> windows) {
  SmallVector<int64_t> pieces;
  for (layout::Interval window : windows)
    pieces.append({window.lo, window.hi});
  return get(axes.front().getContext(), axes, pieces);
}

/// Cuts print as positions. Pieces that follow each other from elsewhere are windows, and print as such.
static bool printAsCuts(ArrayRef<int64_t> pieces) { return areContiguous(pieces) && pieces.front() == 0; }

/// Prints `{}`, `{"y"}`, `{"y" : 0, 4, 8}` or `{"x"+"y" : (0, 5), (3, 8)}`.
static void printDim(AsmPrinter &printer, DimShardingAttr dim) {
  printer << "{";
  if (dim.isSplit()) {
    llvm::interleave(dim.getAxes(), printer.getStream(), [&](StringAttr axis) { printer << axis; }, "+");
    ArrayRef<int64_t> pieces = dim.getPieces();
    if (pieces.empty()) {
      printer << "}";
      return;
    }
    printer << " : ";
    if (printAsCuts(pieces)) {
      printer << pieces.front();
      for (size_t i = 1; i < pieces.size(); i += 2)
        printer << ", " << pieces[i];
    } else {
      for (size_t i = 0; i < pieces.size(); i += 2)
        printer << (i ? ", (" : "(") << pieces[i] << ", " << pieces[i + 1] << ")";
    }
  }
  printer << "}";
}

static FailureOr<DimShardingAttr> parseDim(AsmParser &parser) {
  if (parser.parseLBrace())
    return failure();
  if (succeeded(parser.parseOptionalRBrace()))
    return DimShardingAttr::getUnsplit(parser.getContext());
  SmallVector<StringAttr> axes;
  do {
    // A string attribute would take the colon for the start of its type.
    std::string axis;
    if (parser.parseString(&axis))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), axis));
  } while (succeeded(parser.parseOptionalPlus()));
  if (succeeded(parser.parseOptionalRBrace()))
    return DimShardingAttr::get(parser.getContext(), axes, {});
  if (parser.parseColon())
    return failure();
  SmallVector<int64_t> positions, pieces;
  bool windows = false;
  do {
    int64_t lo, hi;
    if (succeeded(parser.parseOptionalLParen())) {
      windows = true;
      if (parser.parseInteger(lo) || parser.parseComma() || parser.parseInteger(hi) || parser.parseRParen())
        return failure();
      pieces.append({lo, hi});
      continue;
    }
    if (parser.parseInteger(lo))
      return failure();
    positions.push_back(lo);
  } while (succeeded(parser.parseOptionalComma()));
  if (parser.parseRBrace())
    return failure();
  if (windows && !positions.empty()) {
    parser.emitError(parser.getNameLoc(), "cuts and windows cannot be mixed in a dimension");
    return failure();
  }
  if (!windows && positions.front() != 0) {
    parser.emitError(parser.getNameLoc(), "cuts begin at 0, not at ")
        << positions.front() << "; windows are written (" << positions.front() << ", ...)";
    return failure();
  }
  if (!windows)
    return DimShardingAttr::getCuts(axes, positions);
  return DimShardingAttr::get(parser.getContext(), axes, pieces);
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printDim(printer, *this);
  printer << ">";
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimShardingAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

//===----------------------------------------------------------------------===//
// ShardingAttr
//===----------------------------------------------------------------------===//

bool ShardingAttr::isSplit() const {
  return llvm::any_of(getDims(), [](DimShardingAttr dim) { return dim.isSplit(); });
}

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, unsigned rank) {
  SmallVector<DimShardingAttr> dims(rank, DimShardingAttr::getUnsplit(mesh.getContext()));
  return get(mesh.getContext(), mesh, dims, {}, ReduceKind::Sum);
}

ShardingAttr ShardingAttr::withDims(ArrayRef<DimShardingAttr> dims) const {
  return get(getContext(), getMesh(), dims, getPartialAxes(), getPartialKind());
}

ShardingAttr ShardingAttr::withoutPartial() const {
  return get(getContext(), getMesh(), getDims(), {}, ReduceKind::Sum);
}

/// Prints `<@mesh, [{}, {"y" : 0, 4, 8}]`.
static void printDims(AsmPrinter &printer, FlatSymbolRefAttr mesh, ArrayRef<DimShardingAttr> dims) {
  printer << "<" << mesh << ", [";
  llvm::interleaveComma(dims, printer.getStream(), [&](DimShardingAttr dim) { printDim(printer, dim); });
  printer << "]";
}

static ParseResult parseDims(AsmParser &parser, FlatSymbolRefAttr &mesh, SmallVectorImpl<DimShardingAttr> &dims) {
  auto parseOneDim = [&]() -> ParseResult {
    FailureOr<DimShardingAttr> dim = parseDim(parser);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
    return success();
  };
  return failure(parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
                 parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOneDim));
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printDims(printer, getMesh(), getDims());
  if (isPartial()) {
    printer << ", partial = " << stringifyReduceKind(getPartialKind()) << " [";
    llvm::interleaveComma(getPartialAxes(), printer.getStream(), [&](StringAttr axis) { printer << axis; });
    printer << "]";
  }
  printer << ">";
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimShardingAttr> dims;
  SmallVector<StringAttr> partialAxes;
  ReduceKind kind = ReduceKind::Sum;
  if (parseDims(parser, mesh, dims))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc;
    if (parser.parseKeyword("partial") || parser.parseEqual())
      return {};
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    std::optional<ReduceKind> parsed = symbolizeReduceKind(keyword);
    if (!parsed) {
      parser.emitError(loc, "expected sum, prod, max, min or owner");
      return {};
    }
    kind = *parsed;
    auto parseAxis = [&]() -> ParseResult {
      StringAttr axis;
      if (parser.parseAttribute(axis))
        return failure();
      partialAxes.push_back(StringAttr::get(parser.getContext(), axis.getValue()));
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), mesh, dims, partialAxes, kind);
}

LogicalResult ShardingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  if (getDims().size() != shape.size())
    return emitError() << "sharding has " << getDims().size() << " dimensions, but the tensor has " << shape.size();
  llvm::SmallSet<StringRef, 4> used;
  auto use = [&](StringAttr axis) -> LogicalResult {
    if (used.insert(axis.getValue()).second)
      return success();
    return emitError() << "mesh axis " << axis << " is used twice";
  };
  for (auto [index, dim] : llvm::enumerate(getDims())) {
    for (StringAttr axis : dim.getAxes())
      if (failed(use(axis)))
        return failure();
    if (dim.isSplit() && dim.getPieces().empty())
      return emitError() << "dimension " << index << " is split into no pieces";
    if (dim.isInside(shape[index]))
      continue;
    for (layout::Interval piece : dim.getIntervals()) {
      if (piece.lo < 0 || piece.hi < piece.lo || piece.hi > shape[index])
        return emitError() << "dimension " << index << " of extent " << shape[index] << " cannot hold the piece ["
                           << piece.lo << ", " << piece.hi << ")";
    }
  }
  for (StringAttr axis : getPartialAxes())
    if (failed(use(axis)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// BoundedAttr
//===----------------------------------------------------------------------===//

void BoundedAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getCounts(), printer.getStream(), [&](StringAttr count) {
    if (count.empty())
      printer << "_";
    else
      printer << count;
  });
  printer << "]";
  if (getSharding())
    printer << ", " << getSharding();
  printer << ">";
}

Attribute BoundedAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> counts;
  auto parseCount = [&]() -> ParseResult {
    std::string count;
    if (failed(parser.parseOptionalKeyword("_")) && parser.parseString(&count))
      return failure();
    counts.push_back(StringAttr::get(parser.getContext(), count));
    return success();
  };
  ShardingAttr sharding;
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseCount) ||
      (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(sharding)) || parser.parseGreater())
    return {};
  return get(parser.getContext(), counts, sharding);
}

LogicalResult BoundedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type element,
                                          function_ref<InFlightDiagnostic()> emitError) const {
  if (getCounts().size() != shape.size())
    return emitError() << "bounds are of " << getCounts().size() << " dimensions, but the tensor has " << shape.size();
  llvm::SmallDenseMap<StringAttr, int64_t> bounds;
  for (auto [count, extent] : llvm::zip_equal(getCounts(), shape)) {
    if (count.empty())
      continue;
    if (ShapedType::isDynamic(extent))
      return emitError() << "count " << count << " has no bound: the shape must have it";
    if (int64_t bound = bounds.try_emplace(count, extent).first->second; bound != extent)
      return emitError() << "count " << count << " has two bounds, " << bound << " and " << extent;
  }
  if (bounds.empty())
    return emitError() << "no dimension is bounded";
  return getSharding() ? getSharding().verifyEncoding(shape, element, emitError) : success();
}

//===----------------------------------------------------------------------===//
// LoopShardingsAttr
//===----------------------------------------------------------------------===//

void LoopShardingsAttr::print(AsmPrinter &printer) const {
  printDims(printer, getMesh(), getLoops());
  printer << ">";
}

Attribute LoopShardingsAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimShardingAttr> loops;
  if (parseDims(parser, mesh, loops) || parser.parseGreater())
    return {};
  return get(parser.getContext(), mesh, loops);
}
