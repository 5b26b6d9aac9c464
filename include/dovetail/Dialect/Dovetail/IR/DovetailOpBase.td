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

/// A ranked tensor of static shape.
def Dovetail_Tensor : StaticShapeTensorOf<[AnyFloat, AnyInteger]>;
def Dovetail_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def Dovetail_IntegerTensor : StaticShapeTensorOf<[AnyInteger]>;
def Dovetail_BoolTensor : StaticShapeTensorOf<[I1]>;

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

/// An operation that computes a tensor. C++ defines `getDefinition` and `methods`, which are those of
/// `DefinitionOpInterface`.
class Dovetail_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> methods = ["emitBody"]>
    : Dovetail_TensorOp<mnemonic, [DeclareOpInterfaceMethods<DefinitionOpInterface, methods>] # traits>;

/// A compute operation whose result type follows from operands and attributes.
class Dovetail_InferredOp<string mnemonic, list<Trait> traits = [], list<string> methods = ["emitBody"]>
    : Dovetail_ComputeOp<mnemonic, traits # [InferTypeOpAdaptorWithIsCompatible], methods> {
  let extraClassDeclaration = inferDeclaration;
  let extraClassDefinition = inferDefinition;
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILOPBASE_TD
