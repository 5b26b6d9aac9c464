//===- DovetailInterfaces.td - What operators state about themselves -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILINTERFACES_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILINTERFACES_TD

include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.td"

def SplitOpInterface : OpInterface<"SplitOpInterface", [DefinitionOpInterface]> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that is defined, and whose loops can be split among ranks. Shardings in the types must be possible on
    the mesh that they name.

    How the loops are split is decided for the whole graph (`dovetail-choose-shardings`) and stored on the operation as
    `dovetail.loops`, a `#dovetail.loop_shardings`. Whoever replaces the operation after that says it of the replacement, too.
  }];
  let verify = [{ return ::dovetail::verifyShardings($_op); }];
  let verifyWithRegions = 1; // Relations are defined for operations that are right otherwise.
  let extraClassDeclaration = [{
    /// How the loops are split; null if that has not been decided.
    ::dovetail::LoopShardingsAttr getLoopShardings() {
      return (*this)->getAttrOfType<::dovetail::LoopShardingsAttr>(::dovetail::kLoopsAttrName);
    }
    void setLoopShardings(::dovetail::LoopShardingsAttr loops) { (*this)->setAttr(::dovetail::kLoopsAttrName, loops); }
  }];
  let methods = [
    InterfaceMethod<[{
        True if the results are linear in these operands together, while the others are fixed, so that sums that are
        still partial, all over the same ranks, may pass through. As the code of an element shows, unless the operation
        knows better.
      }], "bool", "isLinearIn", (ins "::llvm::ArrayRef<unsigned>":$operands), "",
      [{ return ::dovetail::deriveLinearity($_op, $_op.getDefinition(), operands); }]>,
    InterfaceMethod<[{
        Replaces an operation by simpler ones before it, for when one of its scans is split, or a loop over which only
        the operation itself can combine terms, as `loops` say. Returns the values that replace the results; fails where
        that cannot be split. The operation itself is not erased.
      }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::dovetail::DimShardingAttr>":$loops), "",
      [{ return ::mlir::failure(); }]>,
    InterfaceMethod<[{
        True if `decompose` divides the terms of a loop over which only the operation can combine them. What combines
        the parts of a fold, of each accumulator an operand, is not divided again.
      }], "bool", "dividesTerms", (ins), "", [{ return $_op->getNumOperands() == 1; }]>,
    InterfaceMethod<[{
        Creates what makes the results of a fold of those of its parts: for each result a tensor that has one for each
        part along dimension `dim`, in which the result has extent 1. Only where the operation alone can combine terms.
      }], "::llvm::SmallVector<::mlir::Value>", "combineParts",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$parts, "int64_t":$dim), "",
      [{ llvm_unreachable("exchanges combine its results"); }]>,
    InterfaceMethod<[{
        Replaces an operation by others, before it or among its users, that gain by keeping a row in memory that they go
        over several times, none of which is divided among ranks. Returns the values that replace the results; fails,
        and changes nothing, where nothing would be gained. The operation itself is not erased.
      }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "expandRows",
      (ins "::mlir::OpBuilder &":$builder), "", [{ return ::mlir::failure(); }]>,
    InterfaceMethod<"The memory format around this operation: see `FormatPreference`.",
      "::dovetail::FormatPreference", "getFormatPreference", (ins), "",
      [{ return ::dovetail::FormatPreference::Any; }]>
  ];
}

def PostOpInterface : OpInterface<"PostOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An elementwise operation that can be a step of a library call's epilogue: applied to the result of the call before
    it is stored. Whether a library takes it is the library's to say (`dovetail/Library/Library.h`).
  }];
  let methods = [
    InterfaceMethod<[{
        What it does to a call's result that is its operand number `operand`; nothing if no epilogue can state that.
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
