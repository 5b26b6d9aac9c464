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

def DefinitionOpInterface : OpInterface<"DefinitionOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that is defined: as loops, accesses of its operands, and a body. What ranks need, how cuts follow
    each other, kernels for every target, fusion and constant folding come from this definition, stated once. The
    first loops are the dimensions of the results, which have one shape, in order; the others are reductions, then
    taps. Shardings in the types must be possible on the mesh that they name.

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
    InterfaceMethod<"The loops, and where operands are read.", "::dovetail::Definition", "getDefinition", (ins)>,
    InterfaceMethod<[{
        Emits the element of the result at the loops of `body` or, where the definition is a fold, a term, which may have
        several values. Scalars have the signless form of element types. Definitions that are products, or move
        elements, need none.
      }], "::llvm::SmallVector<::mlir::Value>", "emitBody", (ins "::dovetail::BodyBuilder &":$body), "",
      [{ return ::dovetail::emitDefaultBody($_op, body); }]>,
    InterfaceMethod<[{
        The values to start a fold from, signless scalars. Accumulators of floats narrower than f32 are f32.
      }], "::llvm::SmallVector<::mlir::Value>", "emitInit", (ins "::dovetail::ElementBuilder &":$builder), "",
      [{ return ::dovetail::emitZero($_op, builder); }]>,
    InterfaceMethod<"Combines accumulators and a term, or other accumulators.", "::llvm::SmallVector<::mlir::Value>",
      "emitCombine", (ins "::dovetail::ElementBuilder &":$builder, "::mlir::ValueRange":$accumulators,
                          "::mlir::ValueRange":$term), "",
      [{ return {builder.add(accumulators[0], term[0])}; }]>,
    InterfaceMethod<[{
        The elements of the results from what a fold has given. `body` has the loops of the result.
      }], "::llvm::SmallVector<::mlir::Value>", "emitFinish",
      (ins "::dovetail::BodyBuilder &":$body, "::mlir::ValueRange":$accumulators),
      "", [{ return {::dovetail::emitNarrowed($_op, body, accumulators[0])}; }]>,
    InterfaceMethod<[{
        The term of pass number `pass` over a block of terms, of which earlier passes have `found` these values. Only
        where the definition has passes.
      }], "::mlir::Value", "emitPass", (ins "::dovetail::BodyBuilder &":$body, "unsigned":$pass,
                                            "::mlir::ValueRange":$found), "",
      [{ return ::mlir::Value(); }]>,
    InterfaceMethod<[{
        What a pass over `count` terms (of type index) has found if they come to `folded`.
      }], "::mlir::Value", "emitFound", (ins "::dovetail::ElementBuilder &":$builder, "unsigned":$pass,
                                             "::mlir::Value":$folded, "::mlir::Value":$count), "",
      [{ return folded; }]>,
    InterfaceMethod<[{
        The accumulators of a block of `count` terms (of type index) from what all passes have found.
      }], "::llvm::SmallVector<::mlir::Value>", "emitBlock",
      (ins "::dovetail::ElementBuilder &":$builder, "::mlir::ValueRange":$found, "::mlir::Value":$count), "",
      [{ return ::llvm::SmallVector<::mlir::Value>(found); }]>,
    InterfaceMethod<[{
        Writes all elements of a line of the results: those of all indices in the ranges of the definition's `lines`,
        at the other loops of `line`. Only where there are lines; what accumulates, or writes where data say, need not
        define it.
      }], "void", "emitLine", (ins "::dovetail::LineBuilder &":$line), "",
      [{ ::dovetail::emitDefaultLine($_op, line); }]>,
    InterfaceMethod<[{
        True if one element costs a few instructions and reads each operand a bounded, small number of times, so that
        recomputing it in a consumer is cheaper than storing it.
      }], "bool", "isCheapElement", (ins), "", [{ return true; }]>,
    InterfaceMethod<[{
        True if the result is linear in this operand while the others are fixed, so that a sum that is still partial may
        pass through.
      }], "bool", "isLinearIn", (ins "unsigned":$operand), "", [{ return false; }]>,
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
  let extraSharedClassDeclaration = [{
    /// The loops but taps, and for each operand dimension its relation to one of them.
    ::dovetail::OpRelation getRelation() {
      return ::dovetail::getRelation($_op.getDefinition(), $_op->getOperandTypes());
    }
    /// Whether there are loops over which terms are combined.
    bool isReduction() {
      ::dovetail::Definition definition = $_op.getDefinition();
      return definition.isFold && definition.getNumReductions() > 0;
    }
    /// The elements of the results at `index`, signless scalars: the fold of all terms in the ranges that this rank
    /// executes, each loop with accumulators of its own, so that errors of sums grow with the extents of loops and not
    /// with their product.
    ::llvm::SmallVector<::mlir::Value> emitElement(::dovetail::ElementBuilder &builder, ::llvm::ArrayRef<::mlir::Value> index,
                              ::dovetail::ElementSource &elements) {
      return ::dovetail::emitElement($_op, $_op.getDefinition(), builder, index, elements);
    }
  }];
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
