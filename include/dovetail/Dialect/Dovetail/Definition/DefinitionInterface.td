//===- DefinitionInterface.td - How operations are defined -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONINTERFACE_TD
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONINTERFACE_TD

include "mlir/IR/OpBase.td"

def DefinitionOpInterface : OpInterface<"DefinitionOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that is defined: as loops, accesses of its operands, and a body. What ranks need, how cuts follow
    each other, kernels for every target, fusion and constant folding come from this definition, stated once. The
    first loops are the dimensions of the results, which have one shape, in order; the others are reductions, then
    taps.
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
        recomputing it in a consumer is cheaper than storing it. As the definition shows, unless the code of an element
        reads an operand more often than that says.
      }], "bool", "isCheapElement", (ins), "", [{ return $_op.getDefinition().isCheap(); }]>
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
    /// executes. Each loop has accumulators of its own, so that errors of sums grow with the extents of loops and not
    /// with their product.
    ::llvm::SmallVector<::mlir::Value> emitElement(::dovetail::ElementBuilder &builder, ::llvm::ArrayRef<::mlir::Value> index,
                              ::dovetail::ElementSource &elements) {
      return ::dovetail::emitElement($_op, $_op.getDefinition(), builder, index, elements);
    }
  }];
}

def CallFormOpInterface : OpInterface<"CallFormOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    An operation that a call of a library may do, and whose form does not follow from its definition: a line program, or
    a fold of another kind than a sum of products.
  }];
  let methods = [
    InterfaceMethod<"The form of calls for it; none if there is no such call.",
                    "::std::optional<::dovetail::CallForm>", "getCallForm">
  ];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONINTERFACE_TD
