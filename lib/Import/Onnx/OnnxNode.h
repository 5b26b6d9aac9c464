//===- OnnxNode.h - A node while it is imported -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines OnnxNode, through which imports of operators read a node.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_ONNXNODE_H
#define DOVETAIL_LIB_IMPORT_ONNX_ONNXNODE_H

#include "../Build/GraphBuilder.h"
#include "Binding.h"
#include "Registry.h"
#include "TensorData.h"
#include "onnx/onnx_pb.h"

namespace dovetail::importer {

/// One node of the default domain, checked against the schema of its operator: attributes that are present have the
/// right type, and all operands that must be there are there.
class OnnxNode : public GraphBuilder {
public:
  /// What a node asks of its surroundings, besides what building does.
  struct Surroundings {
    TensorReader &tensors;
    int64_t opset;
    /// Keeps the tensors in attributes alive; null if they are temporary.
    std::shared_ptr<const void> owner;
    /// True for names that something needs.
    llvm::function_ref<bool(llvm::StringRef)> isUsed;
  };

  OnnxNode(const onnx::NodeProto &proto, llvm::ArrayRef<Binding> operands, Context context, Surroundings surroundings)
      : GraphBuilder(std::move(context)), proto(proto), operands(operands), surroundings(std::move(surroundings)),
        results(proto.output_size()) {
    for (const Binding &operand : operands)
      inputs.push_back(operand.value);
  }

  const onnx::NodeProto &getProto() const { return proto; }
  llvm::StringRef getOpType() const { return proto.op_type(); }
  int64_t getOpset() const { return surroundings.opset; }

  // Operands.

  unsigned getNumInputs() const { return inputs.size(); }
  llvm::ArrayRef<mlir::Value> getInputs() const { return inputs; }
  /// The operand, or null if it is absent.
  mlir::Value getInput(unsigned index) const { return index < inputs.size() ? inputs[index] : mlir::Value(); }
  bool hasInput(unsigned index) const { return static_cast<bool>(getInput(index)); }
  /// The operand, which may be a sequence where the operator's import is registered for such.
  Binding getOperand(unsigned index) const { return index < operands.size() ? operands[index] : Binding::absent(); }
  /// The tensors of a sequence; fails if the operand is none.
  llvm::FailureOr<std::vector<mlir::Value>> getSequence(unsigned index);
  /// Fails if the operand's rank is not at least `minRank`.
  llvm::LogicalResult requireRank(unsigned index, int64_t minRank);

  /// The elements of an integer operand that must be known now; `what` is its name in ONNX. Reports `unsupported` if it
  /// is not constant.
  llvm::FailureOr<llvm::SmallVector<int64_t>> getConstantInts(unsigned index, llvm::StringRef what);
  /// The same of extents, each of which may be the count that bounds a dimension.
  /// Runs in which one is below 0 end with an error.
  llvm::FailureOr<llvm::SmallVector<Extent>> getExtents(unsigned index, llvm::StringRef what);
  llvm::FailureOr<SignedExtent> getSignedExtent(unsigned index, llvm::StringRef what);
  llvm::FailureOr<llvm::SmallVector<double>> getConstantFloats(unsigned index, llvm::StringRef what);

  // Attributes.

  const onnx::AttributeProto *getAttr(llvm::StringRef name) const;
  bool hasAttr(llvm::StringRef name) const { return getAttr(name) != nullptr; }
  int64_t getInt(llvm::StringRef name, int64_t defaultValue) const;
  double getFloat(llvm::StringRef name, float defaultValue) const;
  llvm::StringRef getString(llvm::StringRef name, llvm::StringRef defaultValue) const;
  llvm::SmallVector<int64_t> getInts(llvm::StringRef name) const;
  /// Integers that are an attribute before opset `inputSince`, and operand `index` from then on; none if absent.
  llvm::FailureOr<std::optional<llvm::SmallVector<int64_t>>> getIntsAttrOrInput(llvm::StringRef name, unsigned index,
                                                                                int64_t inputSince);

  /// `tensor` of an attribute as a constant.
  mlir::Value constantTensor(const onnx::TensorProto &tensor);

  // Results.

  llvm::LogicalResult setResult(mlir::Value value) { return setResult(0, value); }
  llvm::LogicalResult setResult(unsigned index, mlir::Value value);
  llvm::LogicalResult setBinding(unsigned index, Binding binding);
  /// True if the model uses this result.
  bool isResultUsed(unsigned index) const;
  llvm::ArrayRef<Binding> getResults() const { return results; }

  // Errors.

  /// That elements are of a type, of `onnx::TensorProto`, that there is not.
  static Obstacle describeUnsupportedElements(int32_t type);

private:
  std::string describeOperands() const override;

  const onnx::NodeProto &proto;
  llvm::ArrayRef<Binding> operands;
  Surroundings surroundings;
  llvm::SmallVector<Binding> results;
};

/// Imports a node one to one as the dialect's operation `name`.
llvm::LogicalResult importOneToOne(OnnxNode &node, mlir::RegisteredOperationName name);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_ONNXNODE_H
