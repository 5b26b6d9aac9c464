// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time work=1" -o /dev/null 2>&1 | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --allow-empty --check-prefix=ENOUGH

// Queries, keys and values of the same rows: where the search may look at one cost only, what it has found by then is
// taken, and how far from the best that may be is said.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

// CHECK: warning: the best way to split it that was found takes {{[0-9.]+}} ms as estimated, and none takes less than {{[0-9.]+}} ms, {{[0-9.]+}} % less: the search ended at its limit
// ENOUGH-NOT: the best way
!x = tensor<512x256xf32>
!w = tensor<256x256xf32>
func.func @attention(%x: !x, %q: !w, %k: !w, %v: !w) -> !x {
  %0 = dovetail.matmul %x, %q : (!x, !w) -> !x
  %1 = dovetail.matmul %x, %k : (!x, !w) -> !x
  %2 = dovetail.matmul %x, %v : (!x, !w) -> !x
  %3 = dovetail.transpose %1 {permutation = array<i64: 1, 0>} : (!x) -> tensor<256x512xf32>
  %4 = dovetail.matmul %0, %3 : (!x, tensor<256x512xf32>) -> tensor<512x512xf32>
  %5 = dovetail.exp %4 : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %6 = dovetail.matmul %5, %2 : (tensor<512x512xf32>, !x) -> !x
  %7 = dovetail.add %6, %x : (!x, !x) -> !x
  return %7 : !x
}
