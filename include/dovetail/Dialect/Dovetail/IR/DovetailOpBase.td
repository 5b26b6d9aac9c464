//===- DovetailOpBase.td - Base classes of operations -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILOPBASE_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILOPBASE_TD

include "dovetail/Dialect/Dovetail/IR/DovetailAttributes.td"
include "dovetail/Dialect/Dovetail/IR/DovetailInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Element types that are stored, moved and converted, but not computed with. An element is a byte in memory.
def Dovetail_NarrowFloat : AnyTypeOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, F4E2M1FN],
                                     "8-bit or 4-bit floating-point">;
def Dovetail_NarrowInteger : AnyTypeOf<[AnyI<2>, AnyI<4>], "4-bit or 2-bit integer">;
/// Those that operations compute with.
def Dovetail_Float : Type<And<[AnyFloat.predicate, CPred<"$_self.getIntOrFloatBitWidth() > 8">]>,
                          "floating-point (16 bits or more)">;
def Dovetail_Integer : Type<And<[AnyInteger.predicate, Neg<Dovetail_NarrowInteger.predicate>]>,
                            "boolean or integer (8 bits or more)">;

/// A ranked tensor of static shape, whose elements may be moved.
def Dovetail_Tensor : StaticShapeTensorOf<[AnyFloat, AnyInteger]>;
def Dovetail_NarrowTensor : StaticShapeTensorOf<[Dovetail_NarrowFloat, Dovetail_NarrowInteger]>;
/// Tensors of what may be computed with.
def Dovetail_NumberTensor : StaticShapeTensorOf<[Dovetail_Float, Dovetail_Integer]>;
def Dovetail_FloatTensor : StaticShapeTensorOf<[Dovetail_Float]>;
def Dovetail_IntegerTensor : StaticShapeTensorOf<[Dovetail_Integer]>;
def Dovetail_BoolTensor : StaticShapeTensorOf<[I1]>;

def Dovetail_ElementTypeAttr : ConfinedAttr<TypeAttr, [AttrConstraint<
    CPred<"::llvm::isa<::mlir::FloatType, ::mlir::IntegerType>(::llvm::cast<::mlir::TypeAttr>($_self).getValue())">,
    "a float or integer type">]>;
def Dovetail_NumberTypeAttr : ConfinedAttr<Dovetail_ElementTypeAttr, [AttrConstraint<
    SubstLeaves<"$_self", "::llvm::cast<::mlir::TypeAttr>($_self).getValue()",
                Or<[Dovetail_Float.predicate, Dovetail_Integer.predicate]>>,
    "the type of what can be computed with: a float of 16 bits or more, a boolean, or an integer of 8 bits or more">]>;

/// Defines the ONNX name of an operation.
class Dovetail_OnnxNamed<string name> : NativeOpTrait<"OnnxNamed", [], "", [{
      ::llvm::StringRef $cppClass::getOnnxName() { return "}] # name # [{"; }
    }]> {
  let cppNamespace = "::dovetail";
}

/// Imports one to one from the ONNX operator `name`, which has one result.
class Dovetail_Onnx<string name>
    : TraitList<[DeclareOpInterfaceMethods<OnnxOpInterface>, Dovetail_OnnxNamed<name>]>;

def Dovetail_Elementwise : NativeOpTrait<"Elementwise"> {
  let cppNamespace = "::dovetail";
}

/// An operation without effects that gives a tensor.
class Dovetail_TensorOp<string mnemonic, list<Trait> traits = []>
    : Op<Dovetail_Dialect, mnemonic, [Pure] # traits> {
  let results = (outs Dovetail_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  code typeDeclaration = [{
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getResult().getType());
    }
  }];
  /// For those whose type (without sharding) follows from operands and attributes. C++ defines `inferType`, which emits
  /// an error on failure if there is a location.
  code inferDeclaration = typeDeclaration # [{
    static ::mlir::FailureOr<::mlir::RankedTensorType>
    inferType(std::optional<::mlir::Location> location, Adaptor adaptor);
  }];
  code inferDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      auto type = inferType(location, adaptor);
      if (::mlir::failed(type))
        return ::mlir::failure();
      types.push_back(*type);
      return ::mlir::success();
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::dovetail::equalUpToSharding(l, r);
    }
  }];
  let extraClassDeclaration = typeDeclaration;
}

/// Whether a method is of `DefinitionOpInterface`, not of `SplitOpInterface`.
class Dovetail_Defines<string method> {
  bit value = !or(!eq(!find(method, "emit"), 0), !eq(method, "isCheapElement"));
}

/// An operation that is defined, and can be split. C++ defines `getDefinition` and `methods`, which are those of
/// `DefinitionOpInterface` and of `SplitOpInterface`.
class Dovetail_Defined<list<string> methods> : TraitList<[
    DeclareOpInterfaceMethods<DefinitionOpInterface, !filter(method, methods, Dovetail_Defines<method>.value)>,
    DeclareOpInterfaceMethods<SplitOpInterface, !filter(method, methods, !not(Dovetail_Defines<method>.value))>]>;

/// An operation that computes a tensor.
class Dovetail_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> methods = ["emitBody"]>
    : Dovetail_TensorOp<mnemonic, [Dovetail_Defined<methods>] # traits>;

/// A compute operation whose result type follows from operands and attributes.
class Dovetail_InferredOp<string mnemonic, list<Trait> traits = [], list<string> methods = ["emitBody"]>
    : Dovetail_ComputeOp<mnemonic, traits # [InferTypeOpAdaptorWithIsCompatible], methods> {
  let extraClassDeclaration = inferDeclaration;
  let extraClassDefinition = inferDefinition;
}

/// An operation on elements at the same coordinates; operands broadcast as in NumPy. C++ defines
/// `Value emitScalar(ElementBuilder &, ArrayRef<Value> operands)`, the operation on signless scalars.
class Dovetail_ElementwiseOp<string mnemonic, list<Trait> traits = [], list<string> methods = []>
    : Dovetail_InferredOp<mnemonic, traits # [Dovetail_Elementwise], ["emitBody"] # methods> {
  /// The element type of the result, given `adaptor`.
  code resultElementType = "::mlir::getElementTypeOrSelf(adaptor.getOperands().front().getType())";
  code scalarDeclaration = inferDeclaration # [{
    ::mlir::Value emitScalar(::dovetail::ElementBuilder &builder, ::llvm::ArrayRef<::mlir::Value> operands);
  }];
  let extraClassDeclaration = scalarDeclaration;
  let extraClassDefinition = inferDefinition # [{
    ::mlir::FailureOr<::mlir::RankedTensorType> $cppClass::inferType(
        std::optional<::mlir::Location> location, Adaptor adaptor) {
      return ::dovetail::inferElementwiseType(location, getOperationName(), adaptor.getOperands(),
          }] # resultElementType # [{);
    }
    ::dovetail::Definition $cppClass::getDefinition() {
      return ::dovetail::getElementwiseDefinition(getOperation());
    }
    ::llvm::SmallVector<::mlir::Value> $cppClass::emitBody(::dovetail::BodyBuilder &body) {
      return {emitScalar(body.elements, ::dovetail::readAll(body))};
    }
  }];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILOPBASE_TD
