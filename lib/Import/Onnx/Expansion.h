//===- Expansion.h - Operators that consist of ONNX's -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Expansion and OperatorExpansion. A schema and nodes of ONNX state an operator that ONNX does not have. No
// pass and no operation knows this operator.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_EXPANSION_H
#define DOVETAIL_LIB_IMPORT_ONNX_EXPANSION_H

#include "../Build/Bounds.h"
#include "../Build/UnsupportedParts.h"
#include "Binding.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dovetail::importer {

struct NamedConstant {
  std::string name;
  mlir::ElementsAttr value;
  /// Null if `value` has the elements, else their type: `value` has bytes, whose last dimension holds them packed.
  mlir::RankedTensorType packedType = {};
};

/// A node of an operator that ONNX does not have, and the nodes of ONNX's newest opset that take its place.
///
/// Values have names. Operands of the node have the names of the schema; "" is an operand that is absent.
class Expansion {
public:
  /// An attribute of a node that is added.
  struct Attr {
    Attr(llvm::StringRef name, int value) : Attr(name, static_cast<int64_t>(value)) {}
    Attr(llvm::StringRef name, int64_t value);
    Attr(llvm::StringRef name, double value);
    Attr(llvm::StringRef name, llvm::StringRef value);
    Attr(llvm::StringRef name, const char *value) : Attr(name, llvm::StringRef(value)) {}
    Attr(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
    Attr(llvm::StringRef name, std::initializer_list<int64_t> values)
        : Attr(name, llvm::ArrayRef<int64_t>(values.begin(), values.size())) {}
    onnx::AttributeProto proto;
  };

  /// `inputs` are all known or absent.
  Expansion(const onnx::NodeProto &node, const onnx::OpSchema &schema, llvm::ArrayRef<Binding> inputs,
            const Bounds &bounds, mlir::MLIRContext *context);

  // The node. Operands, results and attributes go by the names of the schema.

  /// The name if the operand is there, else "".
  std::string getOperand(llvm::StringRef name) const { return hasOperand(name) ? name.str() : std::string(); }
  bool hasOperand(llvm::StringRef name) const { return static_cast<bool>(getValue(name)); }
  /// Whether the model asks for this result.
  bool hasResult(llvm::StringRef name) const;
  /// Of an operand that is there. An extent of a dimension that is bounded is its bound.
  mlir::RankedTensorType getType(llvm::StringRef operand) const;
  llvm::ArrayRef<int64_t> getShape(llvm::StringRef operand) const { return getType(operand).getShape(); }
  int64_t getRank(llvm::StringRef operand) const { return getType(operand).getRank(); }
  /// Whether the extent of a dimension is known only when the program runs.
  bool isBounded(llvm::StringRef operand, unsigned dim) const;
  /// Whether two dimensions have one extent in all runs.
  bool isSameExtent(llvm::StringRef operand, unsigned dim, llvm::StringRef other, unsigned otherDim) const;
  /// The constant that an operand is; null if it is none.
  mlir::ElementsAttr getConstant(llvm::StringRef operand) const;
  /// Whether the node has the attribute, or the schema a default for it.
  bool hasAttr(llvm::StringRef name) const { return getAttr(name) != nullptr; }
  int64_t getInt(llvm::StringRef name) const;
  double getFloat(llvm::StringRef name) const;
  llvm::StringRef getString(llvm::StringRef name) const;
  llvm::SmallVector<int64_t> getInts(llvm::StringRef name) const;
  llvm::SmallVector<double> getFloats(llvm::StringRef name) const;

  // Nodes.

  /// Adds a node of one result, whose name it returns.
  std::string add(llvm::StringRef opType, llvm::ArrayRef<std::string> operands, llvm::ArrayRef<Attr> attributes = {});
  /// Adds a node of several results, whose names it returns.
  llvm::SmallVector<std::string> addMany(llvm::StringRef opType, unsigned numResults,
                                         llvm::ArrayRef<std::string> operands, llvm::ArrayRef<Attr> attributes = {});
  std::string constant(mlir::ElementsAttr value);
  /// Elements of `type`, integers of at most 8 bits, that rows of `bytes` hold, low bits first. A row is the last
  /// dimension of `type`; what its bytes have left over is skipped. Large constants stay packed.
  std::string packedConstant(mlir::ElementsAttr bytes, mlir::RankedTensorType type);
  /// A vector of i64.
  std::string ints(llvm::ArrayRef<int64_t> values);
  /// A tensor of rank 0.
  std::string scalar(double value, mlir::Type elementType);
  /// `value`, of `rank` dimensions, with the last one behind the first one, or back from there.
  std::string moveChannels(const std::string &value, int64_t rank, bool toFront);
  /// `value` with elements of another type.
  std::string cast(const std::string &value, mlir::Type elementType);
  void setResult(llvm::StringRef name, llvm::StringRef value);

  // Errors: return what these return.

  /// The node is not supported. `reason` names the attribute or operand.
  llvm::LogicalResult unsupported(const llvm::Twine &reason, const llvm::Twine &remedy = "");
  /// The node is not a valid one.
  llvm::LogicalResult invalid(const llvm::Twine &message);

  // For the importer.

  onnx::FunctionProto &getFunction() { return function; }
  llvm::ArrayRef<NamedConstant> getConstants() const { return constants; }
  const std::optional<Obstacle> &getObstacle() const { return obstacle; }
  llvm::StringRef getInvalid() const { return invalidMessage; }

private:
  /// The name of operand number `index`.
  static std::string getOperandName(const onnx::OpSchema &schema, size_t index);
  mlir::Value getValue(llvm::StringRef operand) const;
  const onnx::AttributeProto *getAttr(llvm::StringRef name) const;

  const onnx::NodeProto &node;
  const onnx::OpSchema &schema;
  llvm::ArrayRef<Binding> inputs;
  const Bounds &bounds;
  mlir::MLIRContext *context;
  onnx::FunctionProto function;
  llvm::SmallVector<NamedConstant> constants;
  unsigned numNames = 0;
  std::optional<Obstacle> obstacle;
  std::string invalidMessage;
};

/// Adds nodes and sets the results that the node has, or returns an error of `Expansion`.
using ExpandFn = llvm::LogicalResult (*)(Expansion &node);

/// Registers, as a static variable, an operator, whose schema is in Expansions/Signatures.inc. In ONNX's own domain,
/// "", too, if ONNX has no operator of this name.
struct OperatorExpansion {
  OperatorExpansion(llvm::StringRef domain, llvm::StringRef opType, ExpandFn expand);
};

struct ExpansionEntry {
  onnx::OpSchema schema;
  ExpandFn expand;
};

/// Null if nothing is registered for the operator.
const ExpansionEntry *lookupExpansion(llvm::StringRef domain, llvm::StringRef opType);
/// All that is registered, by domain and name.
std::vector<const ExpansionEntry *> listExpansions();

/// The newest version of a domain whose operators are registered; 0 for other domains.
int64_t getNewestVersion(llvm::StringRef domain);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_EXPANSION_H
