//===- DovetailInterfaces.td - What operators state about themselves -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILINTERFACES_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILINTERFACES_TD

include "mlir/IR/OpBase.td"

def PartitionableOpInterface : OpInterface<"PartitionableOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that can be partitioned: it relates the dimensions of its operands to its loops. The first loops are
    the dimensions of the result, in order; the others are reductions. This is all that propagation and partitioning
    ask. Shardings in the types must be possible on the mesh that they name.
  }];
  let verify = [{ return ::dovetail::verifyShardings($_op); }];
  let methods = [
    InterfaceMethod<"The loops, and for each operand dimension its relation to one of them.",
      "::dovetail::OpRelation", "getRelation", (ins)>,
    InterfaceMethod<[{
        True if the result is linear in this operand while the others are fixed, so that a sum that is still partial may
        pass through.
      }], "bool", "isLinearIn", (ins "unsigned":$operand), "", [{ return false; }]>,
    InterfaceMethod<[{
        Replaces a composite operation by simpler ones before it, for when one of its composite loops is split or the
        target has no such operation. Returns the value that replaces the result; fails for an operation that is not
        composite. The operation itself is not erased.
      }], "::mlir::FailureOr<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder), "",
      [{ return ::mlir::failure(); }]>,
    InterfaceMethod<"The memory format around this operation: see `FormatPreference`.",
      "::dovetail::FormatPreference", "getFormatPreference", (ins), "",
      [{ return ::dovetail::FormatPreference::Any; }]>
  ];
}

def ElementOpInterface : OpInterface<"ElementOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that defines one element of its result as a function of elements of its operands. Kernels for every
    target, fusion and constant folding come from this definition.
  }];
  let methods = [
    InterfaceMethod<[{
        Emits the scalar computation of the result's element at the global coordinates `index` (of type `index`).
        `elements` reads operands and gives the ranges of reduction loops. All code must be built through `builder`,
        which folds: with constant coordinates and constant operands it yields a constant. The scalar's type is the
        signless form of the element type.
      }], "::mlir::Value", "emitElement",
      (ins "::dovetail::ElementBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$index,
           "::dovetail::ElementSource &":$elements)>,
    InterfaceMethod<[{
        True if one element costs a few instructions and reads each operand a bounded, small number of times, so that
        recomputing it in a consumer is cheaper than storing it.
      }], "bool", "isCheapElement", (ins), "", [{ return true; }]>
  ];
}

def ReductionOpInterface : OpInterface<"ReductionOpInterface", [ElementOpInterface]> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation whose result element is a fold over its reduction loops. Targets use it to order loops and to keep
    several accumulators.
  }];
  let methods = [
    InterfaceMethod<[{
        The value to start from, a signless scalar. Accumulators of floats narrower than f32 are f32: whoever stores one
        converts it to the result's element type (`ElementBuilder::convertFloat`).
      }], "::mlir::Value", "emitInit", (ins "::dovetail::ElementBuilder &":$builder)>,
    InterfaceMethod<[{
        The term at the coordinates `index` of all loops: the dimensions of the result, then the reduction loops.
      }], "::mlir::Value", "emitTerm",
      (ins "::dovetail::ElementBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$index,
           "::dovetail::ElementSource &":$elements)>,
    InterfaceMethod<"Combines an accumulator and a term.", "::mlir::Value", "emitCombine",
      (ins "::dovetail::ElementBuilder &":$builder, "::mlir::Value":$accumulator, "::mlir::Value":$term)>
  ];
}

def LibraryOpInterface : OpInterface<"LibraryOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that vendors' libraries have: it becomes a call where the target's library has it, and a generated
    kernel elsewhere.
  }];
  let methods = [
    InterfaceMethod<[{
        What libraries that do this operation are called in the option `libraries` of `dovetail-to-plan`; empty if none
        does one with these attributes. Element types do not matter here.
      }], "::llvm::StringRef", "getLibraryCall", (ins)>,
    InterfaceMethod<"True if the library can apply elementwise operations (`PostOpInterface`) to the result.",
      "bool", "hasEpilogue", (ins), "", [{ return true; }]>
  ];
}

def PostOpInterface : OpInterface<"PostOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An elementwise operation that libraries can apply to the result of a call before they store it.
  }];
  let methods = [
    InterfaceMethod<[{
        What it does to a call's result that is its operand number `operand`; nothing if no library can do that.
      }], "::std::optional<::dovetail::PostOp>", "getPostOp", (ins "unsigned":$operand)>
  ];
}

def OnnxOpInterface : OpInterface<"OnnxOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that imports one to one from an ONNX operator of the default domain: same operands, and attributes of
    the same names with the same defaults.
  }];
  let methods = [
    StaticInterfaceMethod<"The ONNX operator's name.", "::llvm::StringRef", "getOnnxName", (ins)>
  ];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILINTERFACES_TD
