//===- PackedWeights.cpp - Weights of few bits, with a scale for each block ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States MatMulNBits and GatherBlockQuantized. Weights are packed into bytes, in blocks of which each has a scale.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"
#include "../TensorData.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace dovetail;
using namespace dovetail::importer;

/// Checks attribute 'bits', of elements that are stored in bytes.
static llvm::LogicalResult checkBits(Expansion &node) {
  int64_t bits = node.getInt("bits");
  if (bits == 2 || bits == 4 || bits == 8)
    return llvm::success();
  return node.unsupported("attribute 'bits' is " + llvm::Twine(bits) + "; 2, 4 and 8 are supported");
}

static llvm::LogicalResult checkBlockSize(Expansion &node) {
  int64_t size = node.getInt("block_size");
  if (size >= 16 && llvm::isPowerOf2_64(size))
    return llvm::success();
  return node.invalid("attribute 'block_size' is " + llvm::Twine(size) + ": expected a power of two from 16 on");
}

static std::string describe(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  stream << "]";
  return text;
}

/// Checks that an operand has `shape`, or as many elements in one dimension if that is allowed.
static llvm::LogicalResult checkShape(Expansion &node, llvm::StringRef operand, llvm::ArrayRef<int64_t> shape,
                                      bool mayBeFlat = false) {
  llvm::ArrayRef<int64_t> own = node.getShape(operand);
  if (own == shape || (mayBeFlat && own.size() == 1 && own[0] == node.getType(operand).getNumElements() &&
                       own[0] == mlir::ShapedType::getNumElements(shape)))
    return llvm::success();
  return node.invalid("'" + operand + "' has the shape " + describe(own) + ", but the attributes ask for " +
                      describe(shape));
}

/// The elements of `bits` that rows of bytes hold, low bits first, in `shape`. Its last dimension is a row, without
/// what its bytes have left over. Constants keep their bits, as elements that take no more; others take a byte each.
static std::string unpack(Expansion &node, llvm::StringRef operand, int64_t bits, llvm::ArrayRef<int64_t> shape,
                          bool asConstant) {
  mlir::MLIRContext *context = node.getType(operand).getContext();
  if (asConstant) {
    auto type = mlir::IntegerType::get(context, bits, mlir::IntegerType::Unsigned);
    return node.packedConstant(node.getConstant(operand), mlir::RankedTensorType::get(shape, type));
  }
  std::string value = operand.str();
  auto byte = mlir::IntegerType::get(context, 8, mlir::IntegerType::Unsigned);
  if (bits < 8) {
    llvm::SmallVector<uint8_t> shifts;
    for (int64_t shift = 0; shift < 8; shift += bits)
      shifts.push_back(shift);
    auto type = mlir::RankedTensorType::get(static_cast<int64_t>(shifts.size()), byte);
    std::string places = node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<uint8_t>(shifts)));
    value = node.add("BitShift", {node.add("Unsqueeze", {value, node.ints({-1})}), places}, {{"direction", "RIGHT"}});
    value = node.add("BitwiseAnd", {value, node.scalar((1 << bits) - 1, byte)});
  }
  // A row may be several dimensions of bytes.
  llvm::SmallVector<int64_t> whole(shape);
  int64_t rows = mlir::ShapedType::getNumElements(shape.drop_back());
  whole.back() = node.getType(operand).getNumElements() * (8 / bits) / std::max<int64_t>(rows, 1);
  value = node.add("Reshape", {value, node.ints(whole)});
  if (whole.back() == shape.back())
    return value;
  return node.add("Slice", {value, node.ints({0}), node.ints({shape.back()}), node.ints({-1})});
}

//===----------------------------------------------------------------------===//
// MatMulNBits
//===----------------------------------------------------------------------===//

namespace {

/// The attributes of a MatMulNBits.
struct Blocks {
  int64_t bits, size, rows, terms;
  int64_t count() const { return llvm::divideCeil(terms, size); }
};

} // namespace

/// Checks that 'g_idx', which says each term's block, says what is so without it.
static llvm::LogicalResult checkOrder(Expansion &node, const Blocks &blocks) {
  mlir::ElementsAttr constant = node.getConstant("g_idx");
  auto numbers = constant ? readInts(constant) : std::nullopt;
  auto isNatural = [&] {
    for (auto [term, block] : llvm::enumerate(*numbers))
      if (block != static_cast<int64_t>(term) / blocks.size)
        return false;
    return true;
  };
  if (numbers && static_cast<int64_t>(numbers->size()) >= blocks.terms && isNatural())
    return llvm::success();
  return node.unsupported("operand 'g_idx' gives terms another order than blocks have",
                          "export the model without reordered weights (act_order, desc_act)");
}

static llvm::LogicalResult checkOperands(Expansion &node, const Blocks &blocks) {
  int64_t rowBytes = llvm::divideCeil(blocks.count() * blocks.bits, 8);
  if (failed(checkShape(node, "B", {blocks.rows, blocks.count(), blocks.size * blocks.bits / 8})) ||
      failed(checkShape(node, "scales", {blocks.rows, blocks.count()}, /*mayBeFlat=*/true)))
    return llvm::failure();
  if (!node.hasOperand("zero_points"))
    return llvm::success();
  mlir::Type type = node.getType("zero_points").getElementType();
  if (!type.isInteger(8) && type != node.getType("scales").getElementType())
    return node.invalid("'zero_points' has elements neither of uint8 nor of the type of 'scales'");
  return checkShape(node, "zero_points", {blocks.rows, type.isInteger(8) ? rowBytes : blocks.count()},
                    /*mayBeFlat=*/true);
}

/// `value`, of a number for each block, repeated for each of its terms.
static std::string repeat(Expansion &node, const std::string &value, const Blocks &blocks) {
  std::string block = node.add("Reshape", {value, node.ints({blocks.rows, blocks.count(), 1})});
  block = node.add("Expand", {block, node.ints({blocks.rows, blocks.count(), blocks.size})});
  block = node.add("Reshape", {block, node.ints({blocks.rows, blocks.count() * blocks.size})});
  if (blocks.count() * blocks.size == blocks.terms)
    return block;
  return node.add("Slice", {block, node.ints({0}), node.ints({blocks.terms}), node.ints({1})});
}

/// The weights as numbers of the type of 'scales', a row for each result.
static std::string dequantize(Expansion &node, const Blocks &blocks) {
  mlir::Type type = node.getType("scales").getElementType();
  bool hasZeros = node.hasOperand("zero_points");
  bool hasPackedZeros = hasZeros && node.getType("zero_points").getElementType().isInteger(8);
  // Both are of one type.
  bool asConstant = node.getConstant("B") && (!hasPackedZeros || node.getConstant("zero_points"));
  std::string weights = unpack(node, "B", blocks.bits, {blocks.rows, blocks.terms}, asConstant);
  std::string scales = "scales";
  if (node.getRank("scales") == 1)
    scales = node.add("Reshape", {scales, node.ints({blocks.rows, blocks.count()})});
  if (hasZeros && !hasPackedZeros) {
    mlir::Type wide = mlir::Float32Type::get(type.getContext());
    weights = node.add("Sub", {node.cast(weights, wide), repeat(node, node.cast("zero_points", wide), blocks)});
    return node.cast(node.add("Mul", {weights, repeat(node, node.cast(scales, wide), blocks)}), type);
  }
  std::string zeros;
  if (hasZeros) {
    zeros = unpack(node, "zero_points", blocks.bits, {blocks.rows, blocks.count()}, asConstant);
  } else {
    auto narrow = mlir::IntegerType::get(type.getContext(), asConstant ? blocks.bits : 8, mlir::IntegerType::Unsigned);
    zeros = node.scalar(1 << (blocks.bits - 1), narrow);
  }
  return node.add("DequantizeLinear", {weights, scales, zeros}, {{"axis", 1}, {"block_size", blocks.size}});
}

/// Zeros, or 'bias', as the product with weights that the model leaves out.
static llvm::LogicalResult leaveOut(Expansion &node, const Blocks &blocks) {
  llvm::SmallVector<int64_t> shape(node.getShape("A"));
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (node.isBounded("A", dim))
      return node.unsupported("operand 'B' is empty, and 'A' has an extent that only runs know");
  shape.back() = blocks.rows;
  std::string value =
      node.hasOperand("bias") ? std::string("bias") : node.scalar(0, node.getType("A").getElementType());
  node.setResult("Y", node.add("Expand", {value, node.ints(shape)}));
  return llvm::success();
}

static OperatorExpansion matMulNBits("com.microsoft", "MatMulNBits", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(checkBits(node)) || failed(checkBlockSize(node)))
    return llvm::failure();
  if (int64_t layout = node.getInt("weight_prepacked"))
    return node.unsupported("attribute 'weight_prepacked' is " + llvm::Twine(layout) +
                                ": the weights are in an order for one GPU",
                            "export the model with weight_prepacked = 0");
  Blocks blocks{node.getInt("bits"), node.getInt("block_size"), node.getInt("N"), node.getInt("K")};
  if (blocks.rows < 1 || blocks.terms < 1 || !countElements({blocks.rows, blocks.terms}))
    return node.invalid("attributes 'N' and 'K' are " + llvm::Twine(blocks.rows) + " and " + llvm::Twine(blocks.terms) +
                        ", which are not the extents of a matrix");
  if (node.getRank("A") < 1 || node.getShape("A").back() != blocks.terms)
    return node.invalid("the last extent of 'A' is not 'K' (" + llvm::Twine(blocks.terms) + ")");
  if (node.hasOperand("bias") && failed(checkShape(node, "bias", {blocks.rows})))
    return llvm::failure();
  if (node.getType("B").getNumElements() == 0)
    return leaveOut(node, blocks);
  if (node.hasOperand("g_idx") && failed(checkOrder(node, blocks)))
    return llvm::failure();
  if (failed(checkOperands(node, blocks)))
    return llvm::failure();
  std::string weights = node.add("Transpose", {dequantize(node, blocks)}, {{"perm", {1, 0}}});
  std::string result = node.add("MatMul", {"A", weights});
  node.setResult("Y", node.hasOperand("bias") ? node.add("Add", {result, "bias"}) : result);
  return llvm::success();
});

//===----------------------------------------------------------------------===//
// GatherBlockQuantized
//===----------------------------------------------------------------------===//

namespace {

/// The operands of a GatherBlockQuantized, by name, and what is known of them.
struct Table {
  std::string data, scales, zeros;
  /// Of `data` and of `scales`, as they are when they are unpacked.
  llvm::SmallVector<int64_t> shape, blocks;
  int64_t gatherAxis, quantizeAxis, blockSize;
};

/// Indices that are in range, and where they were so before; "" if they all were.
struct Indices {
  std::string safe, valid;
};

} // namespace

/// Indices of an axis of `extent` elements: not negative, and 0 instead of those out of range.
static Indices checkIndices(Expansion &node, int64_t extent) {
  mlir::ElementsAttr constant = node.getConstant("indices");
  auto isInRange = [&](int64_t index) { return index >= 0 && index < extent; };
  if (auto numbers = constant ? readInts(constant) : std::nullopt; numbers && llvm::all_of(*numbers, isInRange))
    return {"indices", ""};
  mlir::Type type = node.getType("indices").getElementType();
  std::string zero = node.scalar(0, type), limit = node.scalar(static_cast<double>(extent), type);
  std::string counted =
      node.add("Where", {node.add("Less", {"indices", zero}), node.add("Add", {"indices", limit}), "indices"});
  std::string valid =
      node.add("And", {node.add("GreaterOrEqual", {counted, zero}), node.add("Less", {counted, limit})});
  return {node.add("Where", {valid, counted, zero}), valid};
}

static llvm::FailureOr<int64_t> getAxis(Expansion &node, llvm::StringRef name) {
  int64_t axis = node.getInt(name), rank = node.getRank("data");
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  return node.invalid("attribute '" + name + "' is " + llvm::Twine(axis) + ", but 'data' has " + llvm::Twine(rank) +
                      " dimensions");
}

/// Checks 'scales' and 'zero_points', and makes them, and 'data', elements of the table's type.
static llvm::LogicalResult unpackTable(Expansion &node, Table &table) {
  int64_t rank = node.getRank("data");
  mlir::Type type = node.getType("data").getElementType();
  bool isFloat = !type.isInteger();
  int64_t perByte = type.isInteger(8) ? 8 / node.getInt("bits") : 1;
  table.shape.assign(node.getShape("data").begin(), node.getShape("data").end());
  table.shape.back() *= perByte;
  table.blocks = table.shape;
  int64_t &extent = table.blocks[table.quantizeAxis];
  if (isFloat && table.blockSize == 0)
    table.blockSize = std::max<int64_t>(extent, 1);
  extent = llvm::divideCeil(extent, table.blockSize);
  // Floats may have one scale for all indices of an axis.
  llvm::ArrayRef<int64_t> scales = node.getShape("scales");
  bool isShared =
      isFloat && static_cast<int64_t>(scales.size()) == rank && scales != llvm::ArrayRef<int64_t>(table.blocks);
  for (int64_t dim = 0; isShared && dim < rank; ++dim)
    isShared = scales[dim] == table.blocks[dim] || (scales[dim] == 1 && dim != table.quantizeAxis);
  if (!isShared && failed(checkShape(node, "scales", table.blocks)))
    return llvm::failure();
  table.scales = isShared ? node.add("Expand", {"scales", node.ints(table.blocks)}) : "scales";
  table.data = "data";
  if (node.hasOperand("zero_points")) {
    if (isFloat)
      return node.invalid("floats in 'data' take no 'zero_points'");
    llvm::SmallVector<int64_t> shape(table.blocks);
    if (perByte > 1)
      shape.back() = llvm::divideCeil(shape.back(), perByte);
    if (failed(checkShape(node, "zero_points", shape)))
      return llvm::failure();
    table.zeros = "zero_points";
  }
  if (!type.isInteger(8))
    return llvm::success();
  int64_t bits = node.getInt("bits");
  bool asConstant = perByte > 1 && node.getConstant("data") && (table.zeros.empty() || node.getConstant("zero_points"));
  if (perByte > 1) {
    table.data = unpack(node, "data", bits, table.shape, asConstant);
    if (!table.zeros.empty())
      table.zeros = unpack(node, "zero_points", bits, table.blocks, asConstant);
  }
  if (table.zeros.empty()) {
    auto narrow = mlir::IntegerType::get(type.getContext(), asConstant ? bits : 8, mlir::IntegerType::Unsigned);
    table.zeros = node.scalar(1 << (bits - 1), narrow);
  }
  return llvm::success();
}

static OperatorExpansion
    gatherBlockQuantized("com.microsoft", "GatherBlockQuantized", [](Expansion &node) -> llvm::LogicalResult {
      mlir::Type type = node.getType("data").getElementType();
      bool isWhole = !type.isInteger() && node.getInt("block_size") == 0;
      if ((type.isInteger(8) && failed(checkBits(node))) || (!isWhole && failed(checkBlockSize(node))))
        return llvm::failure();
      if (type.isInteger(4) && node.getInt("bits") != 4)
        return node.invalid("attribute 'bits' is " + llvm::Twine(node.getInt("bits")) +
                            ", but 'data' has elements of 4 bits");
      auto gatherAxis = getAxis(node, "gather_axis"), quantizeAxis = getAxis(node, "quantize_axis");
      if (failed(gatherAxis) || failed(quantizeAxis))
        return llvm::failure();
      int64_t rank = node.getRank("data");
      if (type.isInteger(8) && (*gatherAxis != 0 || *quantizeAxis != rank - 1 || rank < 2))
        return node.invalid("'data' of bytes needs 0 as 'gather_axis', and its last dimension as 'quantize_axis'");
      Table table;
      table.gatherAxis = *gatherAxis;
      table.quantizeAxis = *quantizeAxis;
      table.blockSize = node.getInt("block_size");
      if (failed(unpackTable(node, table)))
        return llvm::failure();

      Indices indices = checkIndices(node, table.shape[table.gatherAxis]);
      int64_t added = node.getRank("indices") - 1;
      std::string ofScales = indices.safe;
      int64_t axis = table.quantizeAxis + (table.quantizeAxis > table.gatherAxis ? added : 0),
              blockSize = table.blockSize;
      if (table.quantizeAxis == table.gatherAxis) {
        // Each element that is gathered has a scale of its own.
        mlir::Type index = node.getType("indices").getElementType();
        ofScales = node.add("Div", {indices.safe, node.scalar(static_cast<double>(blockSize), index)});
        axis = 0;
        blockSize = 1;
      }
      auto gather = [&](const std::string &value, const std::string &at) {
        return node.add("Gather", {value, at}, {{"axis", table.gatherAxis}});
      };
      std::string data = gather(table.data, indices.safe), scales = gather(table.scales, ofScales);
      // A zero point without dimensions is one for all.
      bool isScalar = table.zeros.empty() || !node.hasOperand("zero_points");
      std::string zeros = isScalar ? table.zeros : gather(table.zeros, ofScales);
      llvm::SmallVector<Expansion::Attr> attributes;
      if (rank + added > 0)
        attributes = {{"axis", axis}, {"block_size", blockSize}};
      std::string result = node.add("DequantizeLinear", {data, scales, zeros}, attributes);
      if (!indices.valid.empty()) {
        std::string valid = indices.valid;
        auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1 - table.gatherAxis));
        for (int64_t &dim : axes)
          dim = -1 - dim;
        if (!axes.empty())
          valid = node.add("Unsqueeze", {valid, node.ints(axes)});
        result = node.add("Where", {valid, result, node.scalar(0, node.getType("scales").getElementType())});
      }
      node.setResult("output", result);
      return llvm::success();
    });
