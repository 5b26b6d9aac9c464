//===- Channels.cpp - Operators of diffusion models -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States operators on images whose channels are the last dimension: GroupNorm, SkipGroupNorm, BiasAdd, BiasSplitGelu,
// NhwcMaxPool.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"

#include "llvm/ADT/Sequence.h"

using namespace dovetail;
using namespace dovetail::importer;

static OperatorExpansion biasAdd("com.microsoft", "BiasAdd", [](Expansion &node) {
  node.setResult("Y", node.add("Add", {node.add("Add", {"X", "bias"}), "skip"}));
  return llvm::success();
});

/// The first half of the last dimension, times the Gelu of the second one.
static OperatorExpansion biasSplitGelu("com.microsoft", "BiasSplitGelu", [](Expansion &node) -> llvm::LogicalResult {
  if (node.getRank("X") < 1 || node.getShape("X").back() % 2 != 0)
    return node.invalid("the last extent of 'X' is not even");
  auto halves = node.addMany("Split", 2, {node.add("Add", {"X", "bias"})}, {{"axis", -1}, {"num_outputs", 2}});
  node.setResult("Y", node.add("Mul", {halves[0], node.add("Gelu", {halves[1]})}));
  return llvm::success();
});

static OperatorExpansion maxPool("com.microsoft", "NhwcMaxPool", [](Expansion &node) -> llvm::LogicalResult {
  int64_t rank = node.getRank("x");
  if (rank < 3)
    return node.invalid("'x' needs 3 dimensions or more");
  llvm::SmallVector<Expansion::Attr> attributes = {{"auto_pad", node.getString("auto_pad")},
                                                   {"ceil_mode", node.getInt("ceil_mode")}};
  for (const char *name : {"dilations", "kernel_shape", "pads", "strides"})
    if (node.hasAttr(name))
      attributes.emplace_back(name, node.getInts(name));
  std::string value = node.add("MaxPool", {node.moveChannels("x", rank, /*toFront=*/true)}, attributes);
  node.setResult("y", node.moveChannels(value, rank, /*toFront=*/false));
  return llvm::success();
});

/// Sets 'Y' to the norm of `value`, of the shape of 'X' and in f32.
static llvm::LogicalResult normalize(Expansion &node, std::string value) {
  int64_t rank = node.getRank("X"), activation = node.getInt("activation");
  bool isLast = node.getInt("channels_last") != 0;
  mlir::Type narrow = node.getType("X").getElementType(), wide = mlir::Float32Type::get(narrow.getContext());
  if (activation != 0 && activation != 1)
    return node.unsupported("attribute 'activation' is " + llvm::Twine(activation) +
                            "; 0 (none) and 1 (SiLU) are supported");
  if (isLast)
    value = node.moveChannels(value, rank, /*toFront=*/true);
  value = node.add("GroupNormalization", {value, node.cast("gamma", wide), node.cast("beta", wide)},
                   {{"num_groups", node.getInt("groups")}, {"epsilon", node.getFloat("epsilon")}});
  if (activation == 1)
    value = node.add("Swish", {value});
  if (isLast)
    value = node.moveChannels(value, rank, /*toFront=*/false);
  node.setResult("Y", node.cast(value, narrow));
  return llvm::success();
}

static OperatorExpansion groupNorm("com.microsoft", "GroupNorm", [](Expansion &node) -> llvm::LogicalResult {
  if (node.getRank("X") < 3)
    return node.invalid("'X' needs 3 dimensions or more");
  return normalize(node, node.cast("X", mlir::Float32Type::get(node.getType("X").getContext())));
});

static OperatorExpansion skipGroupNorm("com.microsoft", "SkipGroupNorm", [](Expansion &node) -> llvm::LogicalResult {
  int64_t rank = node.getRank("X");
  if (rank < 3)
    return node.invalid("'X' needs 3 dimensions or more");
  bool isLast = node.getInt("channels_last") != 0;
  int64_t channel = isLast ? rank - 1 : 1;
  llvm::ArrayRef<int64_t> shape = node.getShape("X"), own = node.getShape("skip");
  mlir::Type narrow = node.getType("X").getElementType(), wide = mlir::Float32Type::get(narrow.getContext());
  // One number for all places of an image, or one for each.
  llvm::SmallVector<int64_t> single(rank, 1), places;
  single[0] = shape[0];
  single[channel] = shape[channel];
  for (int64_t dim = 1; dim < rank; ++dim)
    if (dim != channel)
      places.push_back(dim);
  std::string skip = node.cast("skip", wide);
  if (own == llvm::ArrayRef<int64_t>({shape[0], shape[channel]}))
    skip = node.add("Unsqueeze", {skip, node.ints(places)});
  else if (own != shape && own != llvm::ArrayRef<int64_t>(single))
    return node.invalid("'skip' has neither the shape of 'X' nor one number for each image and channel");
  std::string sum = node.add("Add", {node.cast("X", wide), skip});
  if (node.hasOperand("bias")) {
    std::string bias = node.cast("bias", wide);
    if (!isLast)
      bias = node.add("Unsqueeze", {bias, node.ints(llvm::to_vector(llvm::seq<int64_t>(1, rank - 1)))});
    sum = node.add("Add", {sum, bias});
  }
  if (node.hasResult("S"))
    node.setResult("S", node.cast(sum, narrow));
  return normalize(node, sum);
});
