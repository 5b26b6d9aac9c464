//===- AttentionParts.cpp - What attentions consist of --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what operators of attention share.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"

#include "../TensorData.h"

#include "llvm/ADT/Sequence.h"

using namespace dovetail;
using namespace dovetail::importer;

std::string importer::reshape(Expansion &node, const std::string &value, llvm::ArrayRef<int64_t> shape) {
  return node.add("Reshape", {value, node.ints(shape)}, {{"allowzero", 1}});
}

std::string importer::splitHeads(Expansion &node, const std::string &value, int64_t heads, int64_t size) {
  std::string apart = node.add("Reshape", {value, node.ints({0, 0, heads, size})});
  return node.add("Transpose", {apart}, {{"perm", {0, 2, 1, 3}}});
}

std::string importer::mergeHeads(Expansion &node, const std::string &value, int64_t heads, int64_t size) {
  std::string moved = node.add("Transpose", {value}, {{"perm", {0, 2, 1, 3}}});
  return node.add("Reshape", {moved, node.ints({0, 0, heads * size})});
}

std::string importer::slice(Expansion &node, const std::string &value, int64_t first, int64_t last, int64_t axis) {
  return node.add("Slice", {value, node.ints({first}), node.ints({last}), node.ints({axis})});
}

std::string importer::pick(Expansion &node, const std::string &value, int64_t index, int64_t axis) {
  return node.add("Squeeze", {slice(node, value, index, index + 1, axis), node.ints({axis})});
}

std::string importer::cast(Expansion &node, const std::string &value, mlir::Type elementType) {
  return node.add("Cast", {value}, {{"to", static_cast<int64_t>(convertElementType(elementType))}});
}

std::string importer::unsqueeze(Expansion &node, const std::string &value, llvm::ArrayRef<int64_t> axes) {
  return node.add("Unsqueeze", {value, node.ints(axes)});
}

std::string importer::getExtent(Expansion &node, const std::string &value, int64_t dim, int64_t extent, bool isOpen) {
  return isOpen ? node.add("Shape", {value}, {{"start", dim}, {"end", dim + 1}}) : node.ints({extent});
}

std::string importer::countUp(Expansion &node, const std::string &value, int64_t dim, int64_t extent, bool isOpen) {
  if (!isOpen)
    return node.ints(llvm::to_vector(llvm::seq<int64_t>(0, extent)));
  auto scalar = [&](const std::string &vector) { return reshape(node, vector, {}); };
  std::string end = scalar(getExtent(node, value, dim, extent, isOpen));
  return node.add("Range", {scalar(node.ints({0})), end, scalar(node.ints({1}))});
}

bool importer::isOpen(Expansion &node, llvm::ArrayRef<llvm::StringRef> operands) {
  for (llvm::StringRef operand : operands)
    for (unsigned dim = 0; node.hasOperand(operand) && dim < node.getRank(operand); ++dim)
      if (node.isBounded(operand, dim))
        return true;
  return false;
}

std::string importer::addRotation(Expansion &node, const std::string &value, const std::string &positions,
                                  llvm::ArrayRef<Expansion::Attr> attributes) {
  std::string cos = node.add("Gather", {"cos_cache", positions}), sin = node.add("Gather", {"sin_cache", positions});
  return node.add("RotaryEmbedding", {value, cos, sin}, attributes);
}

mlir::Type importer::getAttentionType(mlir::Type elementType) {
  return elementType.getIntOrFloatBitWidth() < 32 ? mlir::Float32Type::get(elementType.getContext()) : elementType;
}

double importer::getScale(Expansion &node, int64_t size) {
  double scale = node.getFloat("scale");
  return scale == 0 ? 1 / std::sqrt(static_cast<double>(size)) : scale;
}

double importer::getLowest(mlir::Type elementType) {
  const llvm::fltSemantics &semantics = llvm::cast<mlir::FloatType>(elementType).getFloatSemantics();
  return llvm::APFloat::getLargest(semantics, /*Negative=*/true).convertToDouble();
}

/// Scores with `bias`, and without keys that do not count.
static std::string mask(Expansion &node, const std::string &scores, const AttentionParts &parts, mlir::Type type) {
  if (parts.allowed.empty())
    return parts.bias.empty() ? scores : node.add("Add", {scores, parts.bias});
  std::string lowest = node.scalar(getLowest(type), type);
  if (parts.bias.empty())
    return node.add("Where", {parts.allowed, scores, lowest});
  // One mask, as the compiler knows attentions.
  return node.add("Add", {scores, node.add("Where", {parts.allowed, parts.bias, lowest})});
}

AttentionResults importer::addAttention(Expansion &node, const AttentionParts &parts, mlir::Type type) {
  AttentionResults results;
  int64_t rank = parts.rank;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  std::string product = node.add("MatMul", {parts.query, node.add("Transpose", {parts.key}, {{"perm", order}})});
  product = node.add("Mul", {product, node.scalar(parts.scale, type)});
  if (parts.softcap != 0) {
    std::string cap = node.scalar(parts.softcap, type);
    product = node.add("Mul", {node.add("Tanh", {node.add("Div", {product, cap})}), cap});
  }
  results.scores = mask(node, product, parts, type);
  if (parts.sink.empty()) {
    results.weights = node.add("Softmax", {results.scores}, {{"axis", -1}});
  } else {
    // The softmax shares its sum with the sink.
    std::string all = node.add("Concat", {results.scores, parts.sink}, {{"axis", -1}});
    all = node.add("Softmax", {all}, {{"axis", -1}});
    results.weights = node.add("Slice", {all, node.ints({0}), node.ints({-1}), node.ints({-1})});
  }
  results.output = node.add("MatMul", {results.weights, parts.value});
  return results;
}
