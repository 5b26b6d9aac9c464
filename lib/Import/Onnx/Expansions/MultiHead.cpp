//===- MultiHead.cpp - Attention of as many keys as queries ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States MultiHeadAttention, Attention and QAttention.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"
#include "Quantized.h"

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"

using namespace dovetail;
using namespace dovetail::importer;

namespace {

/// An attention under construction. Queries, keys and values are (batch, heads, tokens, size).
class MultiHead {
public:
  MultiHead(Expansion &node, llvm::StringRef input) : node(node) {
    heads = node.getInt("num_heads");
    type = node.getType(input).getElementType();
    isOpen = importer::isOpen(node, {input, "key", "value", "past_key", "past_value", "past"});
  }

  llvm::LogicalResult checkHeads();
  llvm::LogicalResult readMultiHead();
  llvm::LogicalResult readAttention();
  /// The same of QAttention: sums are of integers, and results of the bias's type.
  llvm::LogicalResult readQuantized();
  /// Finds the terms that masks and biases add to scores.
  llvm::LogicalResult addMask(llvm::StringRef operand);
  void finish();

  /// Whether 'mask' may also say where keys begin, or stand for no mask.
  bool takesStarts = false;

private:
  /// `project` gives the queries, keys and values of all heads, without their bias.
  llvm::LogicalResult readProjected(llvm::StringRef weightsName, llvm::function_ref<std::string()> project);
  llvm::LogicalResult checkQuery();
  llvm::LogicalResult readPacked();
  llvm::LogicalResult readKeys();
  llvm::LogicalResult readPast();
  /// Writes new keys and values into those of the past, behind as many tokens as an operand says.
  llvm::LogicalResult writePast();
  /// Entries of the bias from `first` on, as many as `size` for each head.
  std::string addBias(const std::string &value, int64_t first, int64_t size);
  /// 'mask' as a tensor of bool that broadcasts to scores, "" if nothing is masked.
  llvm::FailureOr<std::string> readMask(llvm::StringRef operand);
  llvm::LogicalResult checkAttentionBias();
  /// Whether there are as many new keys as queries.
  bool hasKeysOfQueries();
  /// The places of all keys.
  std::string places() { return countUp(node, key, 2, past + keys, isOpen); }

  Expansion &node;
  mlir::Type type;
  int64_t heads = 0, batch = 0, queries = 0, keys = 0, past = 0;
  int64_t size = 0, valueSize = 0;
  std::string query, key, value;
  /// Whether extents are known only when the program runs.
  bool isOpen = false;
  /// Where new keys begin, if only runs know it, an i64; 'past' is then the last such place.
  std::string begin;
  AttentionParts parts;
};

} // namespace

llvm::LogicalResult MultiHead::checkHeads() {
  return heads > 0 ? llvm::success()
                   : node.invalid("attribute 'num_heads' is " + llvm::Twine(heads) + ", but it must be positive");
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

std::string MultiHead::addBias(const std::string &value, int64_t first, int64_t size) {
  if (!node.hasOperand("bias"))
    return value;
  return node.add("Add", {value, slice(node, "bias", first, first + heads * size, 0)});
}

llvm::LogicalResult MultiHead::readPacked() {
  llvm::ArrayRef<int64_t> shape = node.getShape("query");
  if (shape.size() != 5 || shape[2] != heads || shape[3] != 3)
    return node.invalid("'query' without 'key' must be (batch, tokens, num_heads, 3, size)");
  if (node.hasOperand("value"))
    return node.invalid("'value' is there without 'key'");
  size = valueSize = shape[4];
  keys = queries;
  std::string packed = "query";
  if (node.hasOperand("bias")) {
    if (node.getShape("bias") != llvm::ArrayRef<int64_t>(3 * heads * size))
      return node.invalid("'bias' must have " + llvm::Twine(3 * heads * size) + " entries");
    std::string moved = node.add("Transpose", {reshape(node, "bias", {3, heads, size})}, {{"perm", {1, 0, 2}}});
    packed = node.add("Add", {packed, moved});
  }
  packed = node.add("Transpose", {packed}, {{"perm", {3, 0, 2, 1, 4}}});
  query = pick(node, packed, 0, 0);
  key = pick(node, packed, 1, 0);
  value = pick(node, packed, 2, 0);
  return llvm::success();
}

llvm::LogicalResult MultiHead::readKeys() {
  llvm::ArrayRef<int64_t> shape = node.getShape("key");
  if (shape.empty() || shape[0] != batch)
    return node.invalid("'key' is not of the batch of 'query'");
  if (shape.size() == 5) {
    if (shape[2] != heads || shape[3] != 2 || shape[4] != size)
      return node.invalid("'key' of 5 dimensions must be (batch, tokens, num_heads, 2, " + llvm::Twine(size) + ")");
    if (node.hasOperand("value"))
      return node.invalid("'value' is there, but 'key' of 5 dimensions has values in it");
    if (node.hasOperand("bias"))
      return node.invalid("'bias' cannot be given with 'key' of 5 dimensions");
    keys = shape[1];
    valueSize = size;
    std::string packed = node.add("Transpose", {"key"}, {{"perm", {3, 0, 2, 1, 4}}});
    key = pick(node, packed, 0, 0);
    value = pick(node, packed, 1, 0);
    return llvm::success();
  }
  if (!node.hasOperand("value"))
    return node.invalid("'value' is missing");
  llvm::ArrayRef<int64_t> values = node.getShape("value");
  if (shape.size() != values.size() || values[0] != batch)
    return node.invalid("'key' and 'value' must have as many dimensions, and the batch of 'query'");
  if (shape.size() == 4) {
    if (shape[1] != heads || shape[3] != size || values[1] != heads || values[2] != shape[2])
      return node.invalid("'key' and 'value' of 4 dimensions must be (batch, num_heads, tokens, size)");
    keys = shape[2];
    valueSize = values[3];
    if (node.hasOperand("past_key"))
      return node.invalid("'past_key' cannot be given with 'key' of 4 dimensions");
    key = "key";
    value = "value";
    return llvm::success();
  }
  if (shape.size() != 3)
    return node.invalid("'key' must have 3, 4 or 5 dimensions");
  if (shape[2] != heads * size || values[1] != shape[1] || values[2] % heads != 0)
    return node.invalid(
        "'key' and 'value' must be (batch, tokens, num_heads * size), with the size of 'query' for keys");
  keys = shape[1];
  valueSize = values[2] / heads;
  key = splitHeads(node, addBias("key", heads * size, size), heads, size);
  value = splitHeads(node, addBias("value", 2 * heads * size, valueSize), heads, valueSize);
  return llvm::success();
}

llvm::LogicalResult MultiHead::readPast() {
  if (node.hasOperand("past_key") != node.hasOperand("past_value"))
    return node.invalid("'past_key' and 'past_value' must be given together");
  if (!node.hasOperand("past_key"))
    return node.hasOperand("past_sequence_length") ? node.invalid("'past_sequence_length' needs 'past_key'")
                                                   : llvm::success();
  llvm::ArrayRef<int64_t> shape = node.getShape("past_key"), values = node.getShape("past_value");
  if (shape.size() != 4 || values.size() != 4)
    return node.invalid("'past_key' and 'past_value' must have 4 dimensions");
  past = shape[2];
  if (shape != llvm::ArrayRef<int64_t>({batch, heads, past, size}))
    return node.invalid("'past_key' must be (" + llvm::Twine(batch) + ", " + llvm::Twine(heads) + ", past tokens, " +
                        llvm::Twine(size) + ")");
  if (values != llvm::ArrayRef<int64_t>({batch, heads, past, valueSize}))
    return node.invalid("'past_value' must be (" + llvm::Twine(batch) + ", " + llvm::Twine(heads) + ", " +
                        llvm::Twine(past) + ", " + llvm::Twine(valueSize) + ")");
  if (node.hasOperand("past_sequence_length"))
    return writePast();
  key = node.add("Concat", {"past_key", key}, {{"axis", 2}});
  value = node.add("Concat", {"past_value", value}, {{"axis", 2}});
  return llvm::success();
}

llvm::LogicalResult MultiHead::writePast() {
  const char *name = "past_sequence_length";
  if (node.getType(name).getNumElements() != 1)
    return node.invalid(llvm::Twine("'") + name + "' must have one entry");
  int64_t room = past;
  if (keys > room)
    return node.invalid("'past_key' of " + llvm::Twine(room) + " tokens has no room for " + llvm::Twine(keys));
  mlir::Type placeType = mlir::IntegerType::get(type.getContext(), 64);
  std::string place = reshape(node, cast(node, name, placeType), {1});
  if (mlir::ElementsAttr constant = node.getConstant(name)) {
    std::optional<ConstantReader> reader = ConstantReader::create(constant);
    if (!reader)
      return node.unsupported(llvm::Twine("the data of operand '") + name + "' is missing");
    past = reader->readBits(0).getSExtValue();
    if (past < 0 || past + keys > room)
      return node.invalid(llvm::Twine("'") + name + "' is " + llvm::Twine(past) + ", but 'past_key' has room for " +
                          llvm::Twine(room) + " tokens, of which " + llvm::Twine(keys) + " are new");
  } else {
    // All of the caches are looked at, and what is behind the new tokens is masked.
    for (const char *user : {"attention_bias", "qk"})
      if (node.hasOperand(user) || node.hasResult(user))
        return node.unsupported(llvm::Twine("'") + user + "' has as many columns as '" + name +
                                    "' says, which is not a constant",
                                "make it an initializer");
    past = room - keys;
    begin = place;
  }
  std::string places = node.add("Expand", {place, node.ints({batch})});
  key = node.add("TensorScatter", {"past_key", key, places}, {{"axis", 2}});
  value = node.add("TensorScatter", {"past_value", value, places}, {{"axis", 2}});
  return llvm::success();
}

llvm::LogicalResult MultiHead::readMultiHead() {
  if (node.hasOperand("cache_indirection"))
    return node.unsupported("operand 'cache_indirection' is for caches that beams share",
                            "export the model without beam search");
  if (failed(checkQuery()))
    return llvm::failure();
  if (!node.hasOperand("key")) {
    if (failed(readPacked()))
      return llvm::failure();
  } else {
    llvm::ArrayRef<int64_t> shape = node.getShape("query");
    if (shape.size() != 3 || shape[2] % heads != 0)
      return node.invalid("'query' must be (batch, tokens, hidden size), of a hidden size that 'num_heads' divides");
    size = shape[2] / heads;
    if (failed(readKeys()))
      return llvm::failure();
    // Keys and values that are whole have theirs already; its entries are there all the same.
    if (node.hasOperand("bias") && node.getShape("bias") != llvm::ArrayRef<int64_t>(heads * (2 * size + valueSize)))
      return node.invalid("'bias' must have " + llvm::Twine(heads * (2 * size + valueSize)) + " entries");
    query = splitHeads(node, addBias("query", 0, size), heads, size);
  }
  if (failed(readPast()))
    return llvm::failure();
  node.setResult("present_key", key);
  node.setResult("present_value", value);
  if (node.hasOperand("past_key") && past + keys < node.getShape("past_key")[2]) {
    key = slice(node, key, 0, past + keys, 2);
    value = slice(node, value, 0, past + keys, 2);
  }
  return llvm::success();
}

llvm::LogicalResult MultiHead::checkQuery() {
  llvm::ArrayRef<int64_t> shape = node.getShape("query");
  if (shape.size() != 3 && shape.size() != 5)
    return node.invalid("'query' must have 3 or 5 dimensions");
  batch = shape[0];
  queries = shape[1];
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

llvm::LogicalResult MultiHead::readAttention() {
  return readProjected("weights", [&] { return node.add("MatMul", {"input", "weights"}); });
}

llvm::LogicalResult MultiHead::readQuantized() {
  if (failed(requireScalars(node, {"input_scale", "input_zero_point"})))
    return llvm::failure();
  for (llvm::StringRef name : {"weight_scale", "weight_zero_point"})
    if (node.hasOperand(name) && node.getType(name).getNumElements() != 1 &&
        node.getShape(name) != node.getShape("weight").take_back(1))
      return node.invalid("'" + name + "' needs one number, or one for each column of 'weight'");
  type = node.getType("bias").getElementType();
  return readProjected("weight", [&] {
    bool hasZero = node.hasOperand("input_zero_point"), isOne = node.getType("weight_scale").getNumElements() == 1;
    std::string zero = hasZero ? getScalar(node, "input_zero_point") : "";
    std::string sum = node.add("MatMulInteger", {"input", "weight", zero, node.getOperand("weight_zero_point")});
    std::string scale = isOne ? getScalar(node, "weight_scale") : "weight_scale";
    scale = node.add("Mul", {getScalar(node, "input_scale"), scale});
    mlir::Type f32 = mlir::Float32Type::get(type.getContext());
    return cast(node, node.add("Mul", {cast(node, sum, f32), cast(node, scale, f32)}), type);
  });
}

llvm::LogicalResult MultiHead::readProjected(llvm::StringRef weightsName, llvm::function_ref<std::string()> project) {
  for (const char *name : {"do_rotary", "past_present_share_buffer"})
    if (node.getInt(name) != 0)
      return node.unsupported(llvm::Twine("attribute '") + name + "' is not supported",
                              "export the model with MultiHeadAttention and RotaryEmbedding");
  if (node.hasOperand("past_sequence_length"))
    return node.unsupported("operand 'past_sequence_length' is for caches that are written in place");
  llvm::ArrayRef<int64_t> input = node.getShape("input"), weights = node.getShape(weightsName);
  if (input.size() != 3 || weights.size() != 2 || weights[0] != input[2])
    return node.invalid("'input' must be (batch, tokens, size), and '" + weightsName +
                        "' (size, sizes of queries, keys and values)");
  batch = input[0];
  queries = keys = input[1];
  llvm::SmallVector<int64_t> sizes = node.getInts("qkv_hidden_sizes");
  if (sizes.empty())
    sizes.assign(3, weights[1] / 3);
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] % heads != 0 || sizes[2] % heads != 0 ||
      llvm::any_of(sizes, [](int64_t size) { return size <= 0; }) || sizes[0] + sizes[1] + sizes[2] != weights[1])
    return node.invalid("queries and keys must have one size, and all sizes must be multiples of 'num_heads' whose sum "
                        "is the " +
                        llvm::Twine(weights[1]) + " columns of '" + weightsName + "'");
  size = sizes[0] / heads;
  valueSize = sizes[2] / heads;
  std::string all = project();
  if (node.hasOperand("bias")) {
    if (node.getShape("bias") != llvm::ArrayRef<int64_t>(weights[1]))
      return node.invalid("'bias' must have " + llvm::Twine(weights[1]) + " entries");
    all = node.add("Add", {all, "bias"});
  }
  query = splitHeads(node, slice(node, all, 0, sizes[0], 2), heads, size);
  key = splitHeads(node, slice(node, all, sizes[0], 2 * sizes[0], 2), heads, size);
  value = splitHeads(node, slice(node, all, 2 * sizes[0], weights[1], 2), heads, valueSize);
  if (node.hasOperand("past")) {
    llvm::ArrayRef<int64_t> shape = node.getShape("past");
    if (shape.size() != 5 || size != valueSize || shape != llvm::ArrayRef<int64_t>({2, batch, heads, shape[3], size}))
      return node.invalid("'past' must be (2, " + llvm::Twine(batch) + ", " + llvm::Twine(heads) + ", past tokens, " +
                          llvm::Twine(size) + "), and values of the size of keys");
    past = shape[3];
    key = node.add("Concat", {pick(node, "past", 0, 0), key}, {{"axis", 2}});
    value = node.add("Concat", {pick(node, "past", 1, 0), value}, {{"axis", 2}});
  }
  if (node.hasResult("present")) {
    if (size != valueSize)
      return node.invalid("'present' needs values of the size of keys");
    std::string axes = node.ints({0});
    node.setResult(
        "present",
        node.add("Concat", {node.add("Unsqueeze", {key, axes}), node.add("Unsqueeze", {value, axes})}, {{"axis", 0}}));
  }
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

llvm::FailureOr<std::string> MultiHead::readMask(llvm::StringRef operand) {
  if (!node.hasOperand(operand))
    return std::string();
  llvm::ArrayRef<int64_t> shape = node.getShape(operand);
  int64_t total = past + keys;
  std::string mask = operand.str();
  auto isPositive = [&](llvm::ArrayRef<int64_t> axes) {
    std::string kept = node.add("Greater", {mask, node.scalar(0, node.getType(operand).getElementType())});
    return node.add("Unsqueeze", {kept, node.ints(axes)});
  };
  if (!begin.empty() && shape.size() != 1) {
    (void)node.unsupported("operand '" + operand +
                               "' has as many columns as 'past_sequence_length' says, which is not a constant",
                           "make it an initializer");
    return llvm::failure();
  }
  if (shape == llvm::ArrayRef<int64_t>({batch, queries, total}))
    return isPositive({1});
  if (shape == llvm::ArrayRef<int64_t>({batch, total}))
    return isPositive({1, 2});
  // All keys alike: as without a mask.
  if (takesStarts && shape.size() == 2 && (shape[0] == batch || shape[0] == 1) && shape[1] == 1)
    return std::string();
  if (shape.size() == 2 && shape[0] == batch && shape[1] == keys) {
    (void)node.unsupported("operand '" + operand + "' has entries for the " + llvm::Twine(keys) +
                               " new keys only, and none for past keys",
                           "extend the mask to all " + llvm::Twine(total) + " keys");
    return llvm::failure();
  }
  if (shape.size() == 4) {
    (void)node.unsupported("operand '" + operand + "' has 4 dimensions", "give the mask as (batch, tokens, keys)");
    return llvm::failure();
  }
  bool hasStarts = takesStarts && shape == llvm::ArrayRef<int64_t>(2 * batch);
  if (shape != llvm::ArrayRef<int64_t>(batch) && shape != llvm::ArrayRef<int64_t>(3 * batch + 2) && !hasStarts) {
    (void)node.invalid("'" + operand + "' has a shape that no kind of mask of " + llvm::Twine(batch) + " sequences, " +
                       llvm::Twine(queries) + " queries and " + llvm::Twine(total) + " keys has");
    return llvm::failure();
  }
  auto positions = [&](int64_t first) {
    std::string part = shape[0] == batch ? mask : slice(node, mask, first, first + batch, 0);
    return unsqueeze(node, cast(node, part, mlir::IntegerType::get(type.getContext(), 64)), {1, 2, 3});
  };
  std::string kept = node.add("Less", {places(), positions(0)});
  if (hasStarts)
    kept = node.add("And", {kept, node.add("GreaterOrEqual", {places(), positions(batch)})});
  return kept;
}

bool MultiHead::hasKeysOfQueries() {
  if (!node.hasOperand("key"))
    return true;
  return node.isSameExtent("query", 1, "key", node.getRank("key") == 4 ? 2 : 1);
}

llvm::LogicalResult MultiHead::checkAttentionBias() {
  llvm::ArrayRef<int64_t> shape = node.getShape("attention_bias");
  if (shape.size() == 4 && (shape[0] == 1 || shape[0] == batch) && (shape[1] == 1 || shape[1] == heads) &&
      shape[2] == queries && shape[3] == past + keys)
    return llvm::success();
  return node.invalid("'attention_bias' must be (" + llvm::Twine(batch) + " or 1, " + llvm::Twine(heads) + " or 1, " +
                      llvm::Twine(queries) + ", " + llvm::Twine(past + keys) + ")");
}

llvm::LogicalResult MultiHead::addMask(llvm::StringRef operand) {
  mlir::Type computed = getAttentionType(type);
  llvm::FailureOr<std::string> kept = readMask(operand);
  if (failed(kept))
    return llvm::failure();
  std::string added;
  if (node.hasOperand("attention_bias")) {
    if (failed(checkAttentionBias()))
      return llvm::failure();
    added = cast(node, "attention_bias", computed);
  }
  if (!kept->empty()) {
    // Keys that are left out count all the same where all are.
    double given = node.hasAttr("mask_filter_value") ? node.getFloat("mask_filter_value") : -10000;
    std::string filter = node.add("Where", {*kept, node.scalar(0, computed), node.scalar(given, computed)});
    added = added.empty() ? filter : node.add("Add", {added, filter});
  }
  parts.bias = added;
  if (node.getInt("unidirectional") != 0 && queries > 1) {
    if (!hasKeysOfQueries())
      return node.unsupported("attribute 'unidirectional' is set for " + llvm::Twine(queries) + " queries and " +
                                  llvm::Twine(keys) + " new keys" +
                                  (keys == queries ? ", of which runs have others" : ""),
                              "give a mask of each query's keys");
    std::string first = begin;
    if (begin.empty()) {
      bool isAttention = node.hasOperand("past");
      first = past == 0 ? node.ints({0})
                        : getExtent(node, isAttention ? "past" : "past_key", isAttention ? 3 : 2, past,
                                    isOpen && !node.hasOperand("past_sequence_length"));
    }
    std::string last = node.add("Add", {countUp(node, query, 2, queries, isOpen), first});
    parts.allowed = node.add("LessOrEqual", {places(), unsqueeze(node, last, {1})});
  } else if (!begin.empty()) {
    std::string end = node.add("Add", {begin, node.ints({keys})});
    parts.allowed = node.add("Less", {places(), end});
  }
  return llvm::success();
}

void MultiHead::finish() {
  mlir::Type computed = getAttentionType(type);
  parts.query = cast(node, query, computed);
  parts.key = cast(node, key, computed);
  parts.value = cast(node, value, computed);
  parts.scale = getScale(node, size);
  AttentionResults results = addAttention(node, parts, computed);
  node.setResult("output", mergeHeads(node, cast(node, results.output, type), heads, valueSize));
  if (node.hasResult("qk"))
    node.setResult("qk", cast(node, results.scores, type));
}

static OperatorExpansion multiHead("com.microsoft", "MultiHeadAttention", [](Expansion &node) -> llvm::LogicalResult {
  MultiHead attention(node, "query");
  if (failed(attention.checkHeads()) || failed(attention.readMultiHead()) ||
      failed(attention.addMask("key_padding_mask")))
    return llvm::failure();
  attention.finish();
  return llvm::success();
});

/// An operator that projects its input itself, as `read` does.
static llvm::LogicalResult expandProjected(Expansion &node, llvm::LogicalResult (MultiHead::*read)()) {
  MultiHead attention(node, "input");
  attention.takesStarts = true;
  if (failed(attention.checkHeads()) || failed((attention.*read)()) || failed(attention.addMask("mask_index")))
    return llvm::failure();
  attention.finish();
  return llvm::success();
}

static OperatorExpansion attention("com.microsoft", "Attention",
                                   [](Expansion &node) { return expandProjected(node, &MultiHead::readAttention); });
static OperatorExpansion quantized("com.microsoft", "QAttention",
                                   [](Expansion &node) { return expandProjected(node, &MultiHead::readQuantized); });
