//===- GroupQuery.cpp - Attention of queries that share keys --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States GroupQueryAttention.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"

using namespace dovetail;
using namespace dovetail::importer;

/// More than models have, and few enough to count with.
static constexpr int64_t kMaxHeads = 1 << 20;

namespace {

/// Tokens of each sequence stand in caches behind those before them. Queries, keys and values are (batch, heads,
/// tokens, size). Places of tokens are i64.
class GroupQuery {
public:
  explicit GroupQuery(Expansion &node) : node(node), type(node.getType("query").getElementType()) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult checkAttributes();
  llvm::LogicalResult readQuery();
  llvm::LogicalResult readCaches();
  void findPlaces();
  llvm::LogicalResult normalize();
  llvm::LogicalResult rotate();
  /// `given` written behind what the cache `past` has.
  std::string write(llvm::StringRef past, const std::string &given);
  llvm::LogicalResult addMask();
  /// (batch, heads, tokens, size), or the like of several dimensions of heads, as (batch, `rest`).
  std::string reshapeHeads(const std::string &value, llvm::ArrayRef<int64_t> rest);
  llvm::LogicalResult finish();

  /// 0, 1, ..., (1, tokens).
  std::string getCount() { return unsqueeze(node, countUp(node, "query", 1, tokens, isOpen), {0}); }
  /// Entries of rows that stand for tokens; others are 0. `axes` are those that `valid` does not have.
  std::string keepValid(const std::string &value, llvm::ArrayRef<int64_t> axes, mlir::Type elementType);
  /// An operand of shape (batch), as i64.
  std::string readLengths(llvm::StringRef operand);
  std::string scalar(int64_t value) {
    return node.scalar(static_cast<double>(value), mlir::IntegerType::get(type.getContext(), 64));
  }

  Expansion &node;
  mlir::Type type;
  int64_t heads = 0, groups = 0, batch = 0, tokens = 0, size = 0;
  /// Entries of 'past_key' and of 'present_key', and how many of these are looked at.
  int64_t past = 0, capacity = 0, seen = 0;
  /// Whether nothing is in the caches.
  bool isFirst = false;
  /// Whether extents are known only when the program runs.
  bool isOpen = false;
  std::string query, key, value;
  /// Of each sequence, (batch, 1): what is in its cache before and after; "" for nothing and for all tokens.
  std::string start, end;
  /// Which rows stand for tokens, (batch, tokens); "" for all.
  std::string valid;
  /// Where tokens stand, (batch or 1, tokens).
  std::string places;
  AttentionParts parts;
};

} // namespace

llvm::LogicalResult GroupQuery::checkAttributes() {
  for (const char *name : {"k_quant_type", "v_quant_type"})
    if (node.getString(name) != "NONE")
      return node.unsupported(llvm::Twine("attribute '") + name + "' is '" + node.getString(name) +
                                  "': quantised caches are not supported",
                              "export the model with caches of the type of 'query'");
  for (const char *name : {"kv_cache_bit_width", "sliding_window_cache"})
    if (node.getInt(name) != 0)
      return node.unsupported(llvm::Twine("attribute '") + name + "' is not supported",
                              "export the model with caches of whole sequences, of the type of 'query'");
  for (const char *name : {"k_scale", "v_scale"})
    if (node.hasOperand(name))
      return node.unsupported(llvm::Twine("operand '") + name + "' is for quantised caches, which are not supported",
                              "export the model with caches of the type of 'query'");
  if (node.hasResult("output_qk") && node.getInt("qk_output") != 1 && node.getInt("qk_output") != 2)
    return node.invalid("result 'output_qk' needs attribute 'qk_output' of 1 or 2");
  if (int64_t causal = node.getInt("causal"); causal != 0 && causal != 1)
    return node.invalid("attribute 'causal' is " + llvm::Twine(causal) + ", but it must be 0 or 1");
  if (node.getInt("causal") == 0 && node.getInt("local_window_size") != -1)
    return node.invalid("attribute 'local_window_size' needs attribute 'causal'");
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

llvm::LogicalResult GroupQuery::readQuery() {
  heads = node.getInt("num_heads");
  groups = node.getInt("kv_num_heads");
  if (heads <= 0 || groups <= 0 || heads > kMaxHeads || heads % groups != 0)
    return node.invalid("attributes 'num_heads' and 'kv_num_heads' are " + llvm::Twine(heads) + " and " +
                        llvm::Twine(groups) + ", but must be at least 1 and at most " + llvm::Twine(kMaxHeads) +
                        ", and the second must divide the first");
  llvm::ArrayRef<int64_t> shape = node.getShape("query");
  bool isPacked = !node.hasOperand("key");
  int64_t columns = isPacked ? heads + 2 * groups : heads;
  if (shape.size() != 3 || shape[2] % columns != 0)
    return node.invalid("'query' must be (batch, tokens, columns), of a number of columns that " +
                        llvm::Twine(columns) + " divides");
  if (node.hasOperand("key") != node.hasOperand("value"))
    return node.invalid("'key' and 'value' must be given together");
  batch = shape[0];
  tokens = shape[1];
  size = shape[2] / columns;
  std::string all = "query", keys = "key", values = "value";
  if (isPacked) {
    all = slice(node, "query", 0, heads * size, 2);
    keys = slice(node, "query", heads * size, (heads + groups) * size, 2);
    values = slice(node, "query", (heads + groups) * size, shape[2], 2);
  } else {
    for (const char *name : {"key", "value"}) {
      llvm::ArrayRef<int64_t> own = node.getShape(name);
      if (own.size() == 3 && own[0] == batch && own[2] == groups * size && own[1] != tokens)
        return node.unsupported(llvm::Twine("operand '") + name + "' has " + llvm::Twine(own[1]) +
                                " tokens and 'query' " + llvm::Twine(tokens));
      if (own != llvm::ArrayRef<int64_t>({batch, tokens, groups * size}))
        return node.invalid(llvm::Twine("'") + name + "' must be (" + llvm::Twine(batch) + ", " + llvm::Twine(tokens) +
                            ", " + llvm::Twine(groups * size) + ")");
    }
  }
  query = splitHeads(node, all, heads, size);
  key = splitHeads(node, keys, groups, size);
  value = splitHeads(node, values, groups, size);
  return llvm::success();
}

llvm::LogicalResult GroupQuery::readCaches() {
  if (node.hasOperand("past_key") != node.hasOperand("past_value"))
    return node.invalid("'past_key' and 'past_value' must be given together");
  if (node.getShape("seqlens_k") != llvm::ArrayRef<int64_t>(batch) &&
      node.getShape("seqlens_k") != llvm::ArrayRef<int64_t>({batch, 1}))
    return node.invalid("'seqlens_k' must have one entry for each of " + llvm::Twine(batch) + " sequences");
  if (node.getType("total_sequence_length").getNumElements() != 1)
    return node.invalid("'total_sequence_length' must have one entry");
  bool hasPast = node.hasOperand("past_key");
  isOpen = importer::isOpen(node, {"query", "key", "value", "past_key", "past_value"});
  if (hasPast) {
    if (node.getRank("past_key") == 4 && node.isBounded("past_key", 2))
      return node.unsupported(
          "operand 'past_key' has in dimension 2 an extent that only runs know",
          "give caches the extent of the longest sequence; 'seqlens_k' says how many tokens they have");
    past = node.getRank("past_key") == 4 ? node.getShape("past_key")[2] : 0;
    for (const char *name : {"past_key", "past_value"}) {
      if (node.getShape(name) != llvm::ArrayRef<int64_t>({batch, groups, past, size}))
        return node.invalid(llvm::Twine("'") + name + "' must be (" + llvm::Twine(batch) + ", " + llvm::Twine(groups) +
                            ", cached tokens, " + llvm::Twine(size) + ")");
      if (node.getType(name).getElementType() != type)
        return node.unsupported(llvm::Twine("operand '") + name + "' is not of the type of 'query'",
                                "export the model with caches of the type of 'query'");
    }
  }
  // Without a constant, the caches have room for all.
  capacity = seen = hasPast ? past : tokens;
  isFirst = !hasPast;
  if (mlir::ElementsAttr constant = node.getConstant("total_sequence_length")) {
    std::optional<ConstantReader> reader = ConstantReader::create(constant);
    if (!reader)
      return node.unsupported("the data of operand 'total_sequence_length' is missing");
    int64_t total = reader->readBits(0).getSExtValue();
    // With lengths of queries, it is only a bound.
    bool isBound = node.hasOperand("query_seqlens");
    if (total < tokens || (total > past && total != past + tokens && !(isBound && hasPast)))
      return node.invalid("'total_sequence_length' is " + llvm::Twine(total) + ", but " + llvm::Twine(tokens) +
                          " new tokens and " + llvm::Twine(past) + " cached ones are " + llvm::Twine(past + tokens) +
                          "; give that, or the tokens in caches that have room");
    seen = total;
    capacity = std::max(past, total);
    isFirst |= total == tokens && !isBound;
  } else if (hasPast && (node.hasOperand("attention_bias") || node.hasResult("output_qk"))) {
    return node.unsupported(
        llvm::Twine(node.hasOperand("attention_bias") ? "operand 'attention_bias'" : "result 'output_qk'") +
            " has as many columns as 'total_sequence_length' says, which is not a constant",
        "make it an initializer");
  }
  if (node.hasOperand("query_seqlens")) {
    if (!hasPast || node.getInt("causal") == 0)
      return node.invalid("'query_seqlens' needs 'past_key' and attribute 'causal'");
    if (node.getShape("query_seqlens") != llvm::ArrayRef<int64_t>(batch))
      return node.invalid("'query_seqlens' must have one entry for each of " + llvm::Twine(batch) + " sequences");
    if (tokens > capacity)
      return node.invalid("caches of " + llvm::Twine(capacity) + " tokens have no room for " + llvm::Twine(tokens));
  }
  return llvm::success();
}

std::string GroupQuery::readLengths(llvm::StringRef operand) {
  std::string lengths = cast(node, operand.str(), mlir::IntegerType::get(type.getContext(), 64));
  return node.getRank(operand) == 2 ? lengths : unsqueeze(node, lengths, {1});
}

void GroupQuery::findPlaces() {
  std::string count = getCount();
  end = node.add("Add", {readLengths("seqlens_k"), scalar(1)});
  if (node.hasOperand("query_seqlens")) {
    std::string lengths = readLengths("query_seqlens");
    start = node.add("Sub", {end, lengths});
    valid = node.add("Less", {count, lengths});
  } else if (!isFirst) {
    // Fewer in all than tokens: the rest of the rows is padding.
    start = node.add("Max", {node.add("Sub", {end, getExtent(node, "query", 1, tokens, isOpen)}), scalar(0)});
  }
  places = start.empty() ? count : node.add("Add", {start, count});
}

//===----------------------------------------------------------------------===//
// Queries and keys
//===----------------------------------------------------------------------===//

llvm::LogicalResult GroupQuery::normalize() {
  if (node.hasOperand("q_norm_weight") != node.hasOperand("k_norm_weight"))
    return node.invalid("'q_norm_weight' and 'k_norm_weight' must be given together");
  if (!node.hasOperand("q_norm_weight"))
    return llvm::success();
  auto apply = [&](std::string &normal, const char *weight, const char *epsilon) {
    double added = node.getFloat(node.hasAttr(epsilon) ? epsilon : "qk_norm_epsilon");
    normal = node.add("RMSNormalization", {normal, weight}, {{"axis", -1}, {"epsilon", added}});
  };
  for (const char *name : {"q_norm_weight", "k_norm_weight"})
    if (node.getShape(name) != llvm::ArrayRef<int64_t>(size))
      return node.invalid(llvm::Twine("'") + name + "' must have " + llvm::Twine(size) + " entries");
  apply(query, "q_norm_weight", "q_norm_epsilon");
  apply(key, "k_norm_weight", "k_norm_epsilon");
  return llvm::success();
}

llvm::LogicalResult GroupQuery::rotate() {
  if (node.getInt("do_rotary") == 0)
    return llvm::success();
  if (!node.hasOperand("cos_cache") || !node.hasOperand("sin_cache"))
    return node.invalid("attribute 'do_rotary' needs 'cos_cache' and 'sin_cache'");
  llvm::ArrayRef<int64_t> shape = node.getShape("cos_cache");
  if (shape.size() != 2 || node.getShape("sin_cache") != shape || 2 * shape[1] > size)
    return node.invalid("'cos_cache' and 'sin_cache' must be (positions, at most " + llvm::Twine(size / 2) + ")");
  if (node.getConstant("total_sequence_length") && !node.hasOperand("query_seqlens") && shape[0] < seen)
    return node.invalid("'cos_cache' and 'sin_cache' have " + llvm::Twine(shape[0]) +
                        " positions, but 'total_sequence_length' is " + llvm::Twine(seen));
  std::string positions = places;
  if (node.hasOperand("position_ids")) {
    if (node.getShape("position_ids") != llvm::ArrayRef<int64_t>({batch, tokens}))
      return node.invalid("'position_ids' must be (" + llvm::Twine(batch) + ", " + llvm::Twine(tokens) + ")");
    std::string first = slice(node, slice(node, "position_ids", 0, 1, 0), 0, 1, 1);
    std::string all = node.add("Add", {first, getCount()});
    positions = isFirst ? all : "position_ids";
    // First tokens stand one behind the other, in all sequences alike.
    if (!isFirst && !node.hasOperand("query_seqlens") && !node.getConstant("total_sequence_length")) {
      std::string total = cast(node, "total_sequence_length", mlir::IntegerType::get(type.getContext(), 64));
      std::string begins =
          node.add("Equal", {reshape(node, total, {1, 1}), getExtent(node, "query", 1, tokens, isOpen)});
      positions = node.add("Where", {begins, all, "position_ids"});
    }
  }
  // Padding may stand where there are no positions.
  if (!valid.empty())
    positions = node.add("Where", {valid, positions, scalar(0)});
  for (std::string *rotated : {&query, &key})
    *rotated = addRotation(node, *rotated, positions,
                           {{"interleaved", node.getInt("rotary_interleaved")},
                            {"rotary_embedding_dim", 2 * shape[1] == size ? 0 : 2 * shape[1]}});
  return llvm::success();
}

std::string GroupQuery::keepValid(const std::string &value, llvm::ArrayRef<int64_t> axes, mlir::Type elementType) {
  if (valid.empty())
    return value;
  return node.add("Where", {unsqueeze(node, valid, axes), value, node.scalar(0, elementType)});
}

std::string GroupQuery::write(llvm::StringRef past, const std::string &given) {
  if (!node.hasOperand(past))
    return given;
  std::string cache = past.str();
  if (int64_t more = capacity - node.getShape(past)[2]; more > 0)
    cache = node.add("Pad", {cache, node.ints({0, 0, 0, 0, 0, 0, more, 0}), node.scalar(0, type)});
  // No write position: at the beginning.
  std::string position = start.empty() ? "" : node.add("Squeeze", {start, node.ints({1})});
  return node.add("TensorScatter", {cache, keepValid(given, {1, 3}, type), position}, {{"axis", 2}});
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

llvm::LogicalResult GroupQuery::addMask() {
  mlir::Type computed = getAttentionType(type);
  // The queries of a group are a dimension of their own, or, of one token, rows of one product.
  int64_t shared = heads / groups;
  bool isRow = tokens == 1 || shared == 1;
  parts.rank = isRow ? 4 : 5;
  // (batch or 1, tokens or 1) as scores have it.
  auto perRow = [&](const std::string &value) {
    return unsqueeze(node, value, isRow ? llvm::ArrayRef<int64_t>({1, 3}) : llvm::ArrayRef<int64_t>({1, 2, 4}));
  };
  // (batch or 1, heads or 1, tokens, columns) as scores have it.
  auto perHead = [&](const std::string &value, int64_t entries, int64_t numHeads, int64_t rows, int64_t columns) {
    llvm::SmallVector<int64_t> shape{entries, numHeads == 1 ? 1 : groups, numHeads == 1 ? 1 : shared};
    if (tokens == 1)
      shape.push_back(columns);
    else if (shared == 1)
      shape = {entries, numHeads, rows, columns};
    else
      shape.append({rows, columns});
    return reshape(node, value, shape);
  };
  // Without caches there are as many keys as queries.
  std::string columns = countUp(node, "query", 1, seen, isOpen && !node.hasOperand("past_key"));
  if (node.getInt("causal") != 0) {
    // Rows of padding may see padding.
    std::string rows = perRow(places);
    parts.allowed = node.add("LessOrEqual", {columns, rows});
    if (int64_t window = node.getInt("local_window_size"); window > 0 && window < seen)
      parts.allowed =
          node.add("And", {parts.allowed, node.add("Greater", {columns, node.add("Sub", {rows, scalar(window)})})});
  } else {
    parts.allowed = node.add("Less", {columns, perRow(end)});
  }
  if (node.hasOperand("attention_bias")) {
    llvm::ArrayRef<int64_t> shape = node.getShape("attention_bias");
    if (shape.size() != 4 || (shape[0] != 1 && shape[0] != batch) || (shape[1] != 1 && shape[1] != heads) ||
        shape[2] != tokens || shape[3] != seen)
      return node.invalid("'attention_bias' must be (" + llvm::Twine(batch) + " or 1, " + llvm::Twine(heads) +
                          " or 1, " + llvm::Twine(tokens) + ", " + llvm::Twine(seen) + ")");
    parts.bias = perHead(cast(node, "attention_bias", computed), shape[0], shape[1], tokens, seen);
  }
  std::string sink;
  if (node.hasOperand("head_sink")) {
    if (node.getShape("head_sink") != llvm::ArrayRef<int64_t>(heads))
      return node.invalid("'head_sink' must have " + llvm::Twine(heads) + " entries");
    sink = perHead(cast(node, "head_sink", computed), 1, heads, 1, 1);
  } else if (node.getInt("smooth_softmax") == 1) {
    sink = reshape(node, node.scalar(0, computed), llvm::SmallVector<int64_t>(parts.rank, 1));
  }
  if (!sink.empty()) {
    llvm::SmallVector<int64_t> shape{batch, groups, shared, tokens, 1};
    if (tokens == 1)
      shape.erase(shape.begin() + 3);
    else if (shared == 1)
      shape.erase(shape.begin() + 2);
    parts.sink = node.add("Expand", {sink, node.ints(shape)});
  }
  return llvm::success();
}

std::string GroupQuery::reshapeHeads(const std::string &value, llvm::ArrayRef<int64_t> rest) {
  llvm::SmallVector<int64_t> shape{batch};
  llvm::append_range(shape, rest);
  if (!isOpen)
    return reshape(node, value, shape);
  // One extent may follow from the others, the first one is copied.
  shape.front() = 0;
  if (tokens != 1)
    shape[shape.size() - 2] = -1;
  return node.add("Reshape", {value, node.ints(shape)});
}

llvm::LogicalResult GroupQuery::finish() {
  mlir::Type computed = getAttentionType(type);
  std::string keys = write("past_key", key), values = write("past_value", value);
  node.setResult("present_key", keys);
  node.setResult("present_value", values);
  if (seen < capacity) {
    keys = slice(node, keys, 0, seen, 2);
    values = slice(node, values, 0, seen, 2);
  }
  if (failed(addMask()))
    return llvm::failure();
  int64_t shared = heads / groups;
  parts.query = cast(node, query, computed);
  if (parts.rank == 5) {
    parts.query = reshapeHeads(parts.query, {groups, shared, tokens, size});
    keys = unsqueeze(node, keys, {2});
    values = unsqueeze(node, values, {2});
  } else if (shared > 1) {
    parts.query = reshapeHeads(parts.query, {groups, shared, size});
  }
  parts.key = cast(node, keys, computed);
  parts.value = cast(node, values, computed);
  parts.scale = getScale(node, size);
  parts.softcap = std::max(node.getFloat("softcap"), 0.0);
  AttentionResults results = addAttention(node, parts, computed);
  std::string output = reshapeHeads(cast(node, results.output, type), {heads, tokens, size});
  node.setResult("output", keepValid(mergeHeads(node, output, heads, size), {2}, type));
  if (node.hasResult("output_qk")) {
    std::string shown = node.getInt("qk_output") == 2 ? results.weights : results.scores;
    shown = node.add("Where", {parts.allowed, shown, node.scalar(0, computed)});
    shown = keepValid(reshape(node, cast(node, shown, type), {batch, heads, tokens, seen}), {1, 3}, type);
    node.setResult("output_qk", shown);
  }
  return llvm::success();
}

llvm::LogicalResult GroupQuery::run() {
  if (failed(checkAttributes()) || failed(readQuery()) || failed(readCaches()))
    return llvm::failure();
  findPlaces();
  if (failed(normalize()) || failed(rotate()))
    return llvm::failure();
  return finish();
}

static OperatorExpansion groupQuery("com.microsoft", "GroupQueryAttention",
                                    [](Expansion &node) { return GroupQuery(node).run(); });
