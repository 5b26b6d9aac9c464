//===- Norms.cpp - Layer norms of sums and of embeddings ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States SimplifiedLayerNormalization, SkipLayerNormalization, SkipSimplifiedLayerNormalization and
// EmbedLayerNormalization.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The reciprocal of the root of the mean of squares, over all dimensions from `axis` on.
static std::string invertDeviation(Expansion &node, const std::string &value, int64_t axis, int64_t rank,
                                   mlir::Type type) {
  llvm::SmallVector<int64_t> axes;
  for (int64_t dim = axis < 0 ? axis + rank : axis; dim < rank; ++dim)
    axes.push_back(dim);
  std::string mean = node.add("ReduceMean", {node.add("Mul", {value, value}), node.ints(axes)});
  std::string shifted = node.add("Add", {mean, node.scalar(node.getFloat("epsilon"), type)});
  return node.add("Reciprocal", {node.add("Sqrt", {shifted})});
}

static OperatorExpansion simplified("", "SimplifiedLayerNormalization", [](Expansion &node) -> llvm::LogicalResult {
  mlir::Type type = node.getType("X").getElementType(), result = node.getType("scale").getElementType();
  int64_t stash = node.getInt("stash_type"), axis = node.getInt("axis"), rank = node.getRank("X");
  if (stash != onnx::TensorProto::FLOAT && stash != onnx::TensorProto::DOUBLE)
    return node.unsupported("attribute 'stash_type' is " + llvm::Twine(stash) +
                            "; 1 (float) and 11 (double) are supported");
  if (axis < -rank || axis >= rank)
    return node.invalid("attribute 'axis' is " + llvm::Twine(axis) + ", but 'X' has " + llvm::Twine(rank) +
                        " dimensions");
  mlir::MLIRContext *context = type.getContext();
  mlir::Type stashed = stash == onnx::TensorProto::DOUBLE ? mlir::Type(mlir::Float64Type::get(context))
                                                          : mlir::Type(mlir::Float32Type::get(context));
  // Nothing is computed in fewer bits than 'X' has.
  mlir::Type wide = type.isF64() ? type : stashed;
  std::string value = node.cast("X", wide), scale = node.cast("scale", wide);
  std::string norm = node.add("RMSNormalization", {value, scale},
                              {{"axis", axis},
                               {"epsilon", node.getFloat("epsilon")},
                               {"stash_type", wide.isF64() ? onnx::TensorProto::DOUBLE : onnx::TensorProto::FLOAT}});
  node.setResult("Y", node.cast(norm, result));
  if (node.hasResult("inv_std_var"))
    node.setResult("inv_std_var", node.cast(invertDeviation(node, value, axis, rank, wide), stashed));
  return llvm::success();
});

/// Checks that 'skip' has the shape of 'input', or lacks its batch.
static llvm::LogicalResult checkSkip(Expansion &node) {
  llvm::ArrayRef<int64_t> input = node.getShape("input"), skip = node.getShape("skip");
  if (input.size() < 2 || skip.size() < 2)
    return node.invalid("'input' and 'skip' need 2 or 3 dimensions");
  bool isBatch = skip.size() == input.size() && skip.drop_back(2) != input.drop_back(2);
  if (skip.size() > input.size() || skip.take_back(2) != input.take_back(2) ||
      (isBatch && llvm::any_of(skip.drop_back(2), [](int64_t extent) { return extent != 1; })))
    return node.invalid("'skip' has neither the shape of 'input' nor this shape without its batch");
  return llvm::success();
}

/// Sums and norms are computed in f32, as sums of f16 would be rounded twice.
static mlir::Type getWideType(Expansion &node, llvm::StringRef operand) {
  return mlir::Float32Type::get(node.getType(operand).getContext());
}

/// The sum of 'input', 'skip' and 'bias', whose rounded values are a result.
static std::string addSkip(Expansion &node) {
  mlir::Type wide = getWideType(node, "input");
  std::string sum = node.add("Add", {node.cast("input", wide), node.cast("skip", wide)});
  if (node.hasOperand("bias"))
    sum = node.add("Add", {sum, node.cast("bias", wide)});
  if (node.hasResult("input_skip_bias_sum"))
    node.setResult("input_skip_bias_sum", node.cast(sum, node.getType("input").getElementType()));
  return sum;
}

/// Sets 'output', 'mean' and 'inv_std_var' to those of the layer norm of `value`, whose elements are f32.
static void normalize(Expansion &node, const std::string &value, mlir::Type wide, mlir::Type narrow) {
  std::string beta = node.hasOperand("beta") ? node.cast("beta", wide) : "";
  bool hasStatistics = node.hasResult("mean") || node.hasResult("inv_std_var");
  auto results = node.addMany("LayerNormalization", hasStatistics ? 3 : 1, {value, node.cast("gamma", wide), beta},
                              {{"axis", -1}, {"epsilon", node.getFloat("epsilon")}});
  node.setResult("output", node.cast(results[0], narrow));
  if (node.hasResult("mean"))
    node.setResult("mean", results[1]);
  if (node.hasResult("inv_std_var"))
    node.setResult("inv_std_var", results[2]);
}

static OperatorExpansion skipNorm("com.microsoft", "SkipLayerNormalization", [](Expansion &node) {
  if (failed(checkSkip(node)))
    return llvm::failure();
  normalize(node, addSkip(node), getWideType(node, "input"), node.getType("input").getElementType());
  return llvm::success();
});

static OperatorExpansion skipSimplified("com.microsoft", "SkipSimplifiedLayerNormalization", [](Expansion &node) {
  if (failed(checkSkip(node)))
    return llvm::failure();
  if (node.hasResult("mean"))
    return node.unsupported("result 'mean' is not computed, as this norm subtracts no mean");
  mlir::Type wide = getWideType(node, "input");
  std::string sum = addSkip(node);
  std::string norm = node.add("RMSNormalization", {sum, node.cast("gamma", wide)},
                              {{"axis", -1}, {"epsilon", node.getFloat("epsilon")}});
  node.setResult("output", node.cast(norm, node.getType("input").getElementType()));
  if (node.hasResult("inv_std_var"))
    node.setResult("inv_std_var", invertDeviation(node, sum, -1, node.getRank("input"), wide));
  return llvm::success();
});

/// Sets 'mask_index': how many words of each line 'mask' has as 1; 0 without a mask.
static void countWords(Expansion &node) {
  mlir::Type type = node.getType("input_ids").getElementType();
  std::string isWord = node.hasOperand("mask") ? node.cast(node.add("Equal", {"mask", node.scalar(1, type)}), type)
                                               : node.add("Mul", {"input_ids", node.scalar(0, type)});
  node.setResult("mask_index", node.add("ReduceSum", {isWord, node.ints({1})}, {{"keepdims", 0}}));
}

static OperatorExpansion embed("com.microsoft", "EmbedLayerNormalization", [](Expansion &node) -> llvm::LogicalResult {
  if (node.getRank("input_ids") != 2)
    return node.invalid("'input_ids' needs 2 dimensions");
  for (const char *name : {"word_embedding", "position_embedding", "segment_embedding"})
    if (node.hasOperand(name) && node.getRank(name) != 2)
      return node.invalid("'" + llvm::Twine(name) + "' needs 2 dimensions");
  if (node.hasOperand("segment_ids") != node.hasOperand("segment_embedding"))
    return node.invalid("'segment_ids' and 'segment_embedding' need each other");
  int64_t length = node.getShape("input_ids")[1], positions = node.getShape("position_embedding")[0];
  if (!node.hasOperand("position_ids") && positions < length)
    return node.invalid("'position_embedding' has " + llvm::Twine(positions) + " rows, but 'input_ids' has " +
                        llvm::Twine(length) + " words");
  mlir::Type wide = getWideType(node, "word_embedding"), narrow = node.getType("word_embedding").getElementType();
  auto look = [&](llvm::StringRef table, llvm::StringRef ids) {
    return node.cast(node.add("Gather", {table.str(), ids.str()}, {{"axis", 0}}), wide);
  };
  std::string places;
  if (node.hasOperand("position_ids")) {
    places = look("position_embedding", "position_ids");
  } else {
    std::string count = node.add("Shape", {"input_ids"}, {{"start", 1}, {"end", 2}});
    places = node.cast(node.add("Slice", {"position_embedding", node.ints({0}), count, node.ints({0})}), wide);
  }
  std::string sum = node.add("Add", {look("word_embedding", "input_ids"), places});
  if (node.hasOperand("segment_ids"))
    sum = node.add("Add", {sum, look("segment_embedding", "segment_ids")});
  if (node.hasResult("embedding_sum"))
    node.setResult("embedding_sum", node.cast(sum, narrow));
  if (node.hasResult("mask_index"))
    countWords(node);
  normalize(node, sum, wide, narrow);
  return llvm::success();
});
