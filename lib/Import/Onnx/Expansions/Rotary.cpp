//===- Rotary.cpp - Rotary positions --------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States RotaryEmbedding.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"

using namespace dovetail;
using namespace dovetail::importer;

static OperatorExpansion rotary("com.microsoft", "RotaryEmbedding", [](Expansion &node) -> llvm::LogicalResult {
  // Kernels look at it only where they would make tables that are too short longer, which none of them does.
  if (node.hasAttr("scale") && node.getFloat("scale") != 1)
    return node.unsupported("attribute 'scale' is " + std::to_string(node.getFloat("scale")) +
                                ", which has no effect in ONNX Runtime",
                            "remove the attribute, and put the scale into 'cos_cache' and 'sin_cache' if it is meant");
  llvm::ArrayRef<int64_t> input = node.getShape("input"), table = node.getShape("cos_cache");
  if (input.size() != 3 && input.size() != 4)
    return node.invalid("'input' must have 3 or 4 dimensions");
  if (table.size() != 2 || node.getShape("sin_cache") != table)
    return node.invalid("'cos_cache' and 'sin_cache' must be of one shape, of 2 dimensions");
  int64_t rotated = node.getInt("rotary_embedding_dim"), heads = node.getInt("num_heads");
  if (rotated > 0 && heads <= 0)
    return node.invalid("attribute 'rotary_embedding_dim' needs attribute 'num_heads'");
  bool isApart = input.size() == 4;
  int64_t batch = input[0], tokens = input[isApart ? 2 : 1];
  int64_t size = isApart ? input[3] : rotated == 0 ? 2 * table[1] : input[2] / heads;
  if (!isApart && (size == 0 || input[2] % size != 0))
    return node.invalid("heads of " + llvm::Twine(size) + " do not divide the " + llvm::Twine(input[2]) +
                        " columns of 'input'");
  int64_t found = isApart ? input[1] : input[2] / size;
  if (heads > 0 && heads != found)
    return node.invalid("attribute 'num_heads' is " + llvm::Twine(heads) + ", but 'input' has " + llvm::Twine(found) +
                        " heads");
  if (rotated > size || 2 * table[1] != (rotated == 0 ? size : rotated))
    return node.invalid("'cos_cache' has " + llvm::Twine(table[1]) + " columns, but heads of " + llvm::Twine(size) +
                        " need half of these, or half of 'rotary_embedding_dim'");
  if (node.getInt("is_packed_batching") == 0 && tokens > table[0])
    return node.invalid("'cos_cache' and 'sin_cache' have " + llvm::Twine(table[0]) + " positions for " +
                        llvm::Twine(tokens) + " tokens");
  std::string positions = "position_ids";
  if (node.getType("position_ids").getNumElements() == 1 && node.getRank("position_ids") < 2) {
    // One position counts for all sequences.
    int64_t dim = isApart ? 2 : 1;
    std::string count = countUp(node, "input", dim, tokens, node.isBounded("input", dim));
    positions = unsqueeze(node, node.add("Add", {reshape(node, "position_ids", {1}), count}), {0});
  } else if (node.getShape("position_ids") != llvm::ArrayRef<int64_t>({batch, tokens})) {
    return node.invalid("'position_ids' must have one entry, or be (" + llvm::Twine(batch) + ", " +
                        llvm::Twine(tokens) + ")");
  }
  if (node.getType("input").getNumElements() == 0) {
    node.setResult("output", "input");
    return llvm::success();
  }
  node.setResult("output", addRotation(node, "input", positions,
                                       {{"interleaved", node.getInt("interleaved")},
                                        {"num_heads", found},
                                        {"rotary_embedding_dim", rotated == size ? 0 : rotated}}));
  return llvm::success();
});
