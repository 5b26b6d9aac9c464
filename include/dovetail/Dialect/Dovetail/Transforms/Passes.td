//===- Passes.td - Passes from one form of operations to another -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_TRANSFORMS_PASSES_TD
#define DOVETAIL_DIALECT_DOVETAIL_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Generalize : Pass<"dovetail-generalize"> {
  let summary = "Make operations carry their definitions as data";
  let description = [{
    Replaces each operation that is defined by a `dovetail.generic` with the same loops, reads and body. Left alone are
    operations that compute lines themselves, such as transforms and recurrences, and those of control flow, which mean
    more than they compute.

    ```mlir
    %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<4x6xf32>) -> tensor<4x1xf32>
    ```

    becomes

    ```mlir
    %0 = dovetail.generic(%x) : (tensor<4x6xf32>) -> tensor<4x1xf32>
        loops [d0 = 4, d1 = 1 whole, d2 = 6 reduction(max)] reads [0 : (d0, d2)]
        combine max body {
      %a = dovetail.read 0 : f32
      dovetail.return %a : f32
    }
    ```
  }];
  let options = [ListOption<"only", "only", "std::string",
                            "Names of the operations, without `dovetail.`; all if there are none">];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def Specialize : Pass<"dovetail-specialize"> {
  let summary = "Give generics the names of operations that they are";
  let description = [{
    Replaces each `dovetail.generic` by a convolution, a transposed one, a product of matrices, a pool, or an operation
    that moves elements (transpose, slice, broadcast, reshape, pad, concat), if that has the same loops, reads and code.
    So rewrites of these operations apply to computations that passes have made.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_TRANSFORMS_PASSES_TD
