//===- RecurrentOps.td - Recurrences along time -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations that go through time step by step.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_RECURRENTOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_RECURRENTOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

/// A recurrence of so many gates, with so many activations. Operands that all have, in order: what the input comes to,
/// [time, batch, gates, hidden]; the recurrence's weights, [gates, from hidden, to hidden]; the first state,
/// [batch, hidden]. Results are [time, batch, hidden].
class Dovetail_RecurrenceOp<string mnemonic, string gates, string functions, list<Trait> traits>
    : Op<Dovetail_Dialect, mnemonic, [Pure, InferTypeOpAdaptorWithIsCompatible,
          Dovetail_Defined<["emitLine", "getFormatPreference"]>] # traits> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// How many products with the state there are, for each element of it.
    static constexpr int64_t numGates = }] # gates # [{;
    static constexpr size_t numFunctions = }] # functions # [{;
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getStates().getType());
    }
  }];
  // Hidden elements are gone through innermost, whatever the formats.
  let extraClassDefinition = [{
    ::dovetail::FormatPreference $cppClass::getFormatPreference() { return ::dovetail::FormatPreference::RowMajor; }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::dovetail::equalUpToSharding(l, r);
    }
  }];
}

def Dovetail_LstmOp : Dovetail_RecurrenceOp<"lstm", "4", "3", [AttrSizedOperandSegments]> {
  let summary = "The states h and c of a long short-term memory after each step (ONNX LSTM, one direction)";
  let description = [{
    With x = `input`[t] + h·`weights` for the gates i, o, f, c, and the functions F, G, H of `functions`:
    i = F(x_i + p_i c), f = F(x_f + p_f c) (or 1 - i: `couple`), c' = f c + i G(x_c), o = F(x_o + p_o c'),
    h' = o H(c'). `peepholes`, [3, hidden], has p_i, p_o, p_f. What functions are given is limited to [-clip, clip]
    unless `clip` is 0. `reverse` goes from the last step to the first. From step lengths[b] on, states of row b stay
    what they are. A row program: time and the hidden dimension stay whole.
  }];
  let arguments = (ins Dovetail_FloatTensor:$input, Dovetail_FloatTensor:$weights, Dovetail_FloatTensor:$initial,
                       Dovetail_FloatTensor:$initial_cells, Optional<Dovetail_FloatTensor>:$peepholes,
                       Optional<Dovetail_IntegerTensor>:$lengths, StrArrayAttr:$functions, DenseF32ArrayAttr:$alphas,
                       DenseF32ArrayAttr:$betas, F32Attr:$clip, BoolAttr:$couple, BoolAttr:$reverse);
  let results = (outs Dovetail_Tensor:$states, Dovetail_Tensor:$cells);
}

def Dovetail_GruOp : Dovetail_RecurrenceOp<"gru", "3", "2", [AttrSizedOperandSegments]> {
  let summary = "The states of a gated recurrent unit after each step (ONNX GRU, one direction)";
  let description = [{
    As `lstm`, with the gates z, r, h, functions F and G: z = F(x_z), r = F(x_r), n = G(`input`_h + (r h)·`weights`_h),
    h' = (1 - z) n + z h. With `bias`, [hidden], the reset gate comes after the product ("linear before reset"):
    n = G(`input`_h + r (h·`weights`_h + bias)). `work` is memory of its own: r h.
  }];
  let arguments = (ins Dovetail_FloatTensor:$input, Dovetail_FloatTensor:$weights, Dovetail_FloatTensor:$initial,
                       Optional<Dovetail_FloatTensor>:$bias, Optional<Dovetail_IntegerTensor>:$lengths,
                       StrArrayAttr:$functions, DenseF32ArrayAttr:$alphas, DenseF32ArrayAttr:$betas, F32Attr:$clip,
                       BoolAttr:$reverse);
  let results = (outs Dovetail_Tensor:$states, Dovetail_Tensor:$work);
}

def Dovetail_RnnOp : Dovetail_RecurrenceOp<"rnn", "1", "1", []> {
  let summary = "The states of a simple recurrence after each step (ONNX RNN, one direction)";
  let description = [{
    As `lstm`, with one gate and one function: h' = F(x).
  }];
  let arguments = (ins Dovetail_FloatTensor:$input, Dovetail_FloatTensor:$weights, Dovetail_FloatTensor:$initial,
                       Optional<Dovetail_IntegerTensor>:$lengths, StrArrayAttr:$functions, DenseF32ArrayAttr:$alphas,
                       DenseF32ArrayAttr:$betas, F32Attr:$clip, BoolAttr:$reverse);
  let results = (outs Dovetail_Tensor:$states);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_RECURRENTOPS_TD
