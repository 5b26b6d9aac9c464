//===- Specialize.cpp - Named operations of definitions that are data -----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a named operation of a generic that has the same definition: convolutions, products, pools and movements. Its
// attributes are guessed from the accesses, and the guess is right if the operation defines itself as the generic does.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::Window;

namespace {
/// Tries operations in the place of a generic.
class Specializer {
public:
  Specializer(OpBuilder &builder, GenericOp generic)
      : builder(builder), generic(generic), definition(generic.getDefinition()) {}

  Operation *run();

private:
  Operation *specializeProduct();
  Operation *specializePool();
  Operation *specializeMove();
  Operation *specializePad(ArrayRef<AccessDim> dims);

  /// The operation `OpT` with these attributes, if it defines itself as the generic does; null, and nothing is left, if
  /// it does not.
  template <typename OpT> Operation *attempt(ArrayRef<NamedAttribute> attributes = {});
  bool isSame(DefinitionOpInterface op);

  NamedAttribute numbers(StringRef name, ArrayRef<int64_t> values) {
    return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
  }
  NamedAttribute number(StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  }
  int64_t getInputExtent(unsigned dim) {
    return cast<RankedTensorType>(generic.getInputs().front().getType()).getDimSize(dim);
  }
  /// Strides, dilations and leading pads of windows, and these trailing pads.
  SmallVector<NamedAttribute> getWindowAttributes(ArrayRef<Window> windows, ArrayRef<int64_t> padsHigh);
  /// The least trailing pads with which windows end at the last element of the result.
  SmallVector<int64_t> getPadsBehind(ArrayRef<Window> windows);

  OpBuilder &builder;
  GenericOp generic;
  Definition definition;
};
} // namespace

bool Specializer::isSame(DefinitionOpInterface op) {
  if (!(op.getDefinition() == definition))
    return false;
  // There is no other code for a product.
  if (definition.isProduct)
    return true;
  GenericOp other = generalize(builder, op);
  if (!other)
    return false;
  bool isSame = other.getKind() == generic.getKind() && other.getStatementAttr() == generic.getStatementAttr();
  for (auto [a, b] : llvm::zip_equal(other->getRegions(), generic->getRegions()))
    isSame = isSame && OperationEquivalence::isRegionEquivalentTo(&a, &b, OperationEquivalence::IgnoreLocations);
  other.erase();
  return isSame;
}

/// Whether operands and attributes of `op` give results of its types, if these follow from them. Definitions are those
/// of operations that do.
static bool hasInferredTypes(Operation *op) {
  auto inferred = dyn_cast<InferTypeOpInterface>(op);
  if (!inferred)
    return true;
  SmallVector<Type> types;
  return succeeded(inferred.inferReturnTypes(op->getContext(), std::nullopt, op->getOperands(), op->getAttrDictionary(),
                                             op->getPropertiesStorage(), op->getRegions(), types)) &&
         inferred.isCompatibleReturnTypes(types, op->getResultTypes());
}

template <typename OpT> Operation *Specializer::attempt(ArrayRef<NamedAttribute> attributes) {
  OperationState state(generic.getLoc(), OpT::getOperationName());
  state.addOperands(generic.getInputs());
  state.addAttributes(attributes);
  state.addTypes(generic->getResultTypes());
  Operation *op = builder.create(state);
  op->setDiscardableAttrs(generic->getDiscardableAttrDictionary());
  // A guess may be wrong without that being an error.
  ScopedDiagnosticHandler quiet(builder.getContext(), [](Diagnostic &) { return success(); });
  if (hasInferredTypes(op) && succeeded(verify(op)) && isSame(cast<DefinitionOpInterface>(op)))
    return op;
  op->erase();
  return nullptr;
}

SmallVector<NamedAttribute> Specializer::getWindowAttributes(ArrayRef<Window> windows, ArrayRef<int64_t> padsHigh) {
  SmallVector<int64_t> strides, dilations, padsLow;
  for (const Window &window : windows) {
    strides.push_back(window.stride);
    dilations.push_back(window.dilation);
    padsLow.push_back(window.pad);
  }
  return {numbers("strides", strides), numbers("dilations", dilations), numbers("pads_low", padsLow),
          numbers("pads_high", padsHigh)};
}

SmallVector<int64_t> Specializer::getPadsBehind(ArrayRef<Window> windows) {
  SmallVector<int64_t> pads;
  for (auto [dim, window] : llvm::enumerate(windows)) {
    int64_t read = getInputExtent(dim + 2), computed = generic.getType().getDimSize(dim + 2);
    if (window.isTransposed)
      std::swap(read, computed);
    pads.push_back((computed - 1) * window.stride + window.reach() - window.pad - read);
  }
  return pads;
}

Operation *Specializer::specializeProduct() {
  std::optional<CallForm> form = classify(definition);
  if (!form)
    return nullptr;
  if (std::holds_alternative<ProductCall>(*form))
    return attempt<MatMulOp>();
  const auto &convolution = std::get<calls::ConvolutionForm>(*form);
  SmallVector<int64_t> pads = getPadsBehind(convolution.windows), added(pads.size(), 0);
  // A result that ends behind the last window is longer by so much.
  if (convolution.isTransposed)
    for (auto [pad, more] : llvm::zip_equal(pads, added))
      if (pad < 0)
        more = -std::exchange(pad, 0);
  SmallVector<NamedAttribute> attributes = getWindowAttributes(convolution.windows, pads);
  attributes.push_back(number("groups", convolution.groups));
  if (!convolution.isTransposed)
    return attempt<ConvOp>(attributes);
  attributes.push_back(numbers("output_padding", added));
  return attempt<ConvTransposeOp>(attributes);
}

Operation *Specializer::specializePool() {
  if (generic.getInputs().size() != 1 || definition.reads.size() != 1)
    return nullptr;
  auto form = calls::PoolForm::find(definition.reads.front().dims, getExtents(definition.loops));
  if (!form)
    return nullptr;
  SmallVector<int64_t> kernel, padsLow;
  for (const Window &window : form->windows) {
    kernel.push_back(window.kernel);
    padsLow.push_back(window.pad);
  }
  SmallVector<int64_t> padsBehind = getPadsBehind(form->windows);
  // Averages may count pads behind the last window.
  for (ArrayRef<int64_t> pads : {ArrayRef<int64_t>(padsBehind), ArrayRef<int64_t>(padsLow)})
    for (PoolKind kind : {PoolKind::Max, PoolKind::AverageExcludePad, PoolKind::AverageIncludePad}) {
      SmallVector<NamedAttribute> attributes = getWindowAttributes(form->windows, pads);
      attributes.push_back(numbers("kernel", kernel));
      attributes.push_back(builder.getNamedAttr("kind", PoolKindAttr::get(builder.getContext(), kind)));
      if (Operation *op = attempt<PoolOp>(attributes))
        return op;
    }
  return nullptr;
}

Operation *Specializer::specializePad(ArrayRef<AccessDim> dims) {
  SmallVector<int64_t> low, high;
  for (auto [dim, access] : llvm::enumerate(dims)) {
    low.push_back(-access.index.getConstant());
    high.push_back(generic.getType().getDimSize(dim) - getInputExtent(dim) - low.back());
  }
  for (PadMode mode : {PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Wrap}) {
    NamedAttribute named = builder.getNamedAttr("mode", PadModeAttr::get(builder.getContext(), mode));
    if (Operation *op = attempt<PadOp>({numbers("low", low), numbers("high", high), named}))
      return op;
  }
  return nullptr;
}

Operation *Specializer::specializeMove() {
  int64_t rank = generic.getType().getRank();
  if (definition.reads.size() != 1 || generic.getInputs().size() != 1) {
    for (int64_t axis = 0; axis < rank; ++axis)
      if (Operation *op = attempt<ConcatOp>({number("axis", axis)}))
        return op;
    // Of a value that is given.
    const Access &first = definition.reads.front();
    bool isPadded = generic.getInputs().size() == 2 && first.operand == 0 && first.dims.size() == size_t(rank);
    return isPadded ? specializePad(first.dims) : nullptr;
  }
  ArrayRef<AccessDim> dims = definition.reads.front().dims;
  // Without repetitions, dimensions of extent 1 are added or taken away.
  bool repeats = cast<RankedTensorType>(generic.getInputs().front().getType()).getNumElements() !=
                 generic.getType().getNumElements();
  if (repeats)
    if (Operation *op = attempt<BroadcastOp>())
      return op;
  if (static_cast<int64_t>(dims.size()) != rank)
    return attempt<ReshapeOp>();
  SmallVector<int64_t> permutation, starts, steps;
  for (auto [dim, access] : llvm::enumerate(dims)) {
    permutation.push_back(rank);
    for (int64_t loop = 0; loop < rank; ++loop)
      if (access.index.asLoop() == loop)
        permutation.back() = loop;
    starts.push_back(access.index.getConstant());
    steps.push_back(access.index.getFactor(static_cast<int>(dim)).value_or(0));
    // Dimensions of one element have no step.
    if (generic.getType().getDimSize(dim) <= 1)
      steps.back() = 1;
  }
  // Operand dimension d is that of loop permutation[d].
  SmallVector<int64_t> inverse(rank, -1);
  for (auto [dim, loop] : llvm::enumerate(permutation))
    if (loop < rank)
      inverse[loop] = static_cast<int64_t>(dim);
  if (!llvm::is_contained(inverse, -1))
    if (Operation *op = attempt<TransposeOp>({numbers("permutation", inverse)}))
      return op;
  if (Operation *op = attempt<SliceOp>(
          {numbers("starts", starts), numbers("sizes", generic.getType().getShape()), numbers("steps", steps)}))
    return op;
  if (Operation *op = specializePad(dims))
    return op;
  return attempt<ReshapeOp>();
}

Operation *Specializer::run() {
  if (generic->getNumResults() != 1 || generic.getInputs().empty() || definition.scan || definition.writes ||
      !definition.passes.empty() || definition.reads.empty())
    return nullptr;
  if (definition.isProduct)
    return specializeProduct();
  return definition.isFold ? specializePool() : specializeMove();
}

Operation *dovetail::specialize(OpBuilder &builder, GenericOp generic) { return Specializer(builder, generic).run(); }
