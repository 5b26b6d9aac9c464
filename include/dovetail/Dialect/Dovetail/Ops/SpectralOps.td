//===- SpectralOps.td - Fourier transforms -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_SPECTRALOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_SPECTRALOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_JoinsLines : NativeOpTrait<"JoinsLines"> {
  let cppNamespace = "::dovetail";
}

def Dovetail_DftOp : Dovetail_InferredOp<"dft",
    [Dovetail_JoinsLines, DeclareOpInterfaceMethods<CallFormOpInterface>],
    ["emitLine", "isLinearIn"]> {
  let summary = "Discrete Fourier transform of `length` points along a dimension";
  let description = [{
    The last dimension holds complex numbers: of extent 2 their real and imaginary parts, of extent 1 real numbers.
    Element k of the result is the sum over n of x[n] exp(-2 pi i k n / length) or, with `inverse`, of
    x[n] exp(2 pi i k n / length), divided by `length`.

    With `onesided`, of an even length, numbers are real and their spectrum is its elements 0 ... length / 2, which say
    all of it: forward, x is real and the result has these elements; `inverse`, they are given, and the result is real.
    As in NumPy, imaginary parts of the first and last one then do not count.

    With `unscaled`, as libraries have it, an `inverse` transform is not divided by `length`, and where it is `onesided`,
    imaginary parts of the first and last element are zero.

    `table` holds roots of one, as FourierPlan.h lays them out: a constant that operations of equal lengths share.
    Lengths are those that FourierPlan has factors for. A row program, of factors of up to 31: `axis` stays whole.
  }];
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatTensor:$table, I64Attr:$axis, I64Attr:$length,
                       UnitAttr:$inverse, UnitAttr:$onesided, UnitAttr:$unscaled);
  let extraClassDeclaration = inferDeclaration # [{
    /// True if what is read, or what is written, are real numbers.
    bool readsReal();
    bool writesReal();
    /// True if a library of transforms does all of it: it is not scaled, and of real numbers there is half of the spectrum.
    bool isPlain();
  }];
}

def Dovetail_FramesOp : Dovetail_InferredOp<"frames", [], []> {
  let summary = "Pieces of `length` elements of a dimension, each `step` after the one before";
  let description = [{
    Dimension `axis` becomes two: as many pieces as are whole, and the elements of a piece, which stay together.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, I64Attr:$axis, I64Attr:$length, I64Attr:$step);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_SPECTRALOPS_TD
