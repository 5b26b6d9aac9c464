//===- AttentionParts.h - What attentions consist of -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what operators of attention share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_EXPANSIONS_ATTENTIONPARTS_H
#define DOVETAIL_LIB_IMPORT_ONNX_EXPANSIONS_ATTENTIONPARTS_H

#include "../Expansion.h"

namespace dovetail::importer {

/// (batch, tokens, heads * size) as (batch, heads, tokens, size).
std::string splitHeads(Expansion &node, const std::string &value, int64_t heads, int64_t size);
/// (batch, heads, tokens, size) as (batch, tokens, heads * size).
std::string mergeHeads(Expansion &node, const std::string &value, int64_t heads, int64_t size);
/// Entries `first` to `last` of dimension `axis`.
std::string slice(Expansion &node, const std::string &value, int64_t first, int64_t last, int64_t axis);
/// Entry `index` of dimension `axis`, which is gone.
std::string pick(Expansion &node, const std::string &value, int64_t index, int64_t axis);
std::string reshape(Expansion &node, const std::string &value, llvm::ArrayRef<int64_t> shape);
std::string cast(Expansion &node, const std::string &value, mlir::Type elementType);
std::string unsqueeze(Expansion &node, const std::string &value, llvm::ArrayRef<int64_t> axes);
/// The extent of a dimension, a vector of one i64: `extent`, unless only runs know it.
std::string getExtent(Expansion &node, const std::string &value, int64_t dim, int64_t extent, bool isOpen);
/// A vector of as many numbers 0, 1, ... of i64.
std::string countUp(Expansion &node, const std::string &value, int64_t dim, int64_t extent, bool isOpen);
/// Whether an extent of an operand of the node is known only when the program runs.
bool isOpen(Expansion &node, llvm::ArrayRef<llvm::StringRef> operands);

/// `value` turned by the angles of 'cos_cache' and 'sin_cache' at `positions`, (batch or 1, tokens).
std::string addRotation(Expansion &node, const std::string &value, const std::string &positions,
                        llvm::ArrayRef<Expansion::Attr> attributes);

/// Attention of queries to keys and values, (..., tokens, size) each.
struct AttentionParts {
  std::string query, key, value;
  int64_t rank = 4;
  double scale = 1;
  /// Scores are softcap * tanh(score / softcap), unless it is 0.
  double softcap = 0;
  /// Added to scores; "" for nothing.
  std::string bias;
  /// Of bool: which keys count; "" for all.
  std::string allowed;
  /// Another score that the softmax sees, for a key without a value, (..., tokens, 1); "" for none.
  std::string sink;
};

struct AttentionResults {
  std::string output;
  /// Operand and result of the softmax.
  std::string scores, weights;
};

/// The type of what attention is computed in: f32 for narrower types, so that sums and exponentials are as exact.
mlir::Type getAttentionType(mlir::Type elementType);

/// Adds the nodes of an attention. Operands are of the type that `getAttentionType` says.
AttentionResults addAttention(Expansion &node, const AttentionParts &parts, mlir::Type type);

/// The factor of scores: 'scale', or else what the head's size makes it.
double getScale(Expansion &node, int64_t size);
/// The least finite number of a type.
double getLowest(mlir::Type elementType);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_EXPANSIONS_ATTENTIONPARTS_H
