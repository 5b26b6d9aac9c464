//===- Fused.cpp - Products with scales, activations and sums -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States the products that ONNX Runtime fuses with their surroundings: FusedMatMul, TransposeMatMul, FusedGemm,
// FusedConv, NhwcFusedConv, NhwcConv.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"

#include "llvm/ADT/Sequence.h"

using namespace dovetail;
using namespace dovetail::importer;

/// op(operand): with the last two dimensions swapped if `transposed`. If `batch`, the first one is moved behind the
/// other ones of the batch before that.
static std::string transpose(Expansion &node, llvm::StringRef operand, bool transposed, bool batch) {
  int64_t rank = node.getRank(operand);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  // A vector is not transposed.
  if (rank < 2)
    return operand.str();
  if (batch && rank > 2)
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed)
    std::swap(order[rank - 1], order[rank - 2]);
  if (llvm::is_sorted(order))
    return operand.str();
  return node.add("Transpose", {operand.str()}, {{"perm", order}});
}

/// `value` times the attribute `name`.
static std::string scale(Expansion &node, std::string value, llvm::StringRef name, mlir::Type elementType) {
  double factor = node.getFloat(name);
  return factor == 1 ? value : node.add("Mul", {value, node.scalar(factor, elementType)});
}

static llvm::LogicalResult expandMatMul(Expansion &node) {
  if ((node.getInt("transBatchA") || node.getInt("transBatchB")) &&
      (node.getRank("A") < 3 || node.getRank("A") != node.getRank("B")))
    return node.invalid("'transBatchA' and 'transBatchB' need inputs of one rank, at least 3");
  std::string a = transpose(node, "A", node.getInt("transA"), node.getInt("transBatchA"));
  std::string b = transpose(node, "B", node.getInt("transB"), node.getInt("transBatchB"));
  node.setResult("Y", scale(node, node.add("MatMul", {a, b}), "alpha", node.getType("A").getElementType()));
  return llvm::success();
}

static OperatorExpansion fusedMatMul("com.microsoft", "FusedMatMul", expandMatMul);
static OperatorExpansion transposeMatMul("com.microsoft", "TransposeMatMul", expandMatMul);

namespace {

/// An activation, and its numbers by ONNX's names.
struct Activation {
  llvm::StringRef name;
  llvm::SmallVector<llvm::StringRef, 2> params;
};

} // namespace

/// Activations that ONNX Runtime fuses into a convolution.
static const Activation convActivations[] = {{"Relu", {}},
                                             {"Tanh", {}},
                                             {"Sigmoid", {}},
                                             {"LeakyRelu", {"alpha"}},
                                             {"HardSigmoid", {"alpha", "beta"}},
                                             {"Clip", {"min", "max"}}};

/// Activations that ONNX Runtime fuses into a Gemm.
static const Activation gemmActivations[] = {{"Relu", {}},
                                             {"Tanh", {}},
                                             {"Sigmoid", {}},
                                             {"Softplus", {}},
                                             {"Softsign", {}},
                                             {"LeakyRelu", {"alpha"}},
                                             {"Elu", {"alpha"}},
                                             {"ThresholdedRelu", {"alpha"}},
                                             {"HardSigmoid", {"alpha", "beta"}},
                                             {"Selu", {"alpha", "gamma"}}};

/// The activation that the node names, of those that its operator may have; null for none. Fails if it has another one.
static llvm::FailureOr<const Activation *> findActivation(Expansion &node, llvm::ArrayRef<Activation> activations) {
  llvm::StringRef name = node.getString("activation");
  if (name.empty())
    return nullptr;
  auto found = llvm::find_if(activations, [&](const Activation &activation) { return activation.name == name; });
  if (found != activations.end())
    return found;
  return node.unsupported("attribute 'activation' names '" + name + "', which is not supported here");
}

static std::string activate(Expansion &node, const std::string &value, const Activation &activation,
                            llvm::ArrayRef<double> params, mlir::Type elementType) {
  if (activation.name == "Clip")
    return node.add("Clip", {value, node.scalar(params[0], elementType), node.scalar(params[1], elementType)});
  llvm::SmallVector<Expansion::Attr> attributes;
  for (auto [name, param] : llvm::zip(activation.params, params))
    attributes.emplace_back(name, param);
  return node.add(activation.name, {value}, attributes);
}

static OperatorExpansion fusedGemm("com.microsoft", "FusedGemm", [](Expansion &node) -> llvm::LogicalResult {
  auto activation = findActivation(node, gemmActivations);
  if (failed(activation))
    return llvm::failure();
  std::string value = node.add("Gemm", {"A", "B", node.getOperand("C")},
                               {{"alpha", node.getFloat("alpha")},
                                {"beta", node.getFloat("beta")},
                                {"transA", node.getInt("transA")},
                                {"transB", node.getInt("transB")}});
  if (*activation) {
    llvm::SmallVector<double> params;
    for (llvm::StringRef name : (*activation)->params) {
      std::string attribute = ("activation_" + name).str();
      if (!node.hasAttr(attribute))
        return node.invalid("activation '" + (*activation)->name + "' needs the attribute '" + attribute + "'");
      params.push_back(node.getFloat(attribute));
    }
    value = activate(node, value, **activation, params, node.getType("A").getElementType());
  }
  node.setResult("Y", value);
  return llvm::success();
});

/// Attributes of a convolution.
static llvm::SmallVector<Expansion::Attr> getConvAttributes(Expansion &node) {
  llvm::SmallVector<Expansion::Attr> attributes = {{"auto_pad", node.getString("auto_pad")},
                                                   {"group", node.getInt("group")}};
  for (const char *name : {"dilations", "kernel_shape", "pads", "strides"})
    if (node.hasAttr(name))
      attributes.emplace_back(name, node.getInts(name));
  return attributes;
}

/// The convolution of 'X', whose channels are the last dimension if `isLast`, as those of the result then.
static std::string convolve(Expansion &node, bool isLast) {
  int64_t rank = node.getRank("X");
  std::string input = isLast ? node.moveChannels("X", rank, /*toFront=*/true) : "X";
  std::string value = node.add("Conv", {input, "W", node.getOperand("B")}, getConvAttributes(node));
  return isLast ? node.moveChannels(value, rank, /*toFront=*/false) : value;
}

template <bool isLast> static llvm::LogicalResult expandConv(Expansion &node) {
  if (node.getRank("X") < 3)
    return node.invalid("'X' needs 3 dimensions or more");
  auto activation = findActivation(node, convActivations);
  if (failed(activation))
    return llvm::failure();
  std::string value = convolve(node, isLast);
  if (node.hasOperand("Z"))
    value = node.add("Add", {value, "Z"});
  if (*activation) {
    llvm::SmallVector<double> params = node.getFloats("activation_params");
    size_t wanted = (*activation)->params.size();
    // Surplus numbers of activations without any are ignored by their author, too.
    if (wanted > 0 && params.size() != wanted)
      return node.invalid("activation '" + (*activation)->name + "' takes " + llvm::Twine(wanted) +
                          " numbers, but 'activation_params' has " + llvm::Twine(params.size()));
    value = activate(node, value, **activation, params, node.getType("X").getElementType());
  }
  node.setResult("Y", value);
  return llvm::success();
}

static OperatorExpansion fusedConv("com.microsoft", "FusedConv", expandConv<false>);
static OperatorExpansion nhwcFusedConv("com.microsoft", "NhwcFusedConv", expandConv<true>);

static OperatorExpansion nhwcConv("com.microsoft", "NhwcConv", [](Expansion &node) -> llvm::LogicalResult {
  if (node.getRank("X") < 3)
    return node.invalid("'X' needs 3 dimensions or more");
  node.setResult("Y", convolve(node, /*isLast=*/true));
  return llvm::success();
});
