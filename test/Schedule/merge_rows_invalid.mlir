// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --plan-merge-rows

// Which dimensions are rows depends on what ranks hold: they are those of one mesh.

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{a module has one mesh, but this is the second}}
dovetail.mesh @other = ["y" = 3]

// -----

// What is stated of a product before is refused where it cannot be.

dovetail.mesh @mesh = ["y" = 1]

plan.program @depends mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4x5x6xf32> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<4x6x3xf32> <[0, 1, 2]>
  %2 = plan.buffer arena tensor<4x5x3xf32> <[0, 1, 2]>
  %a = plan.view %0 : !plan.ref<tensor<4x5x6xf32>>
  %w = plan.view %1 : !plan.ref<tensor<4x6x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<4x5x3xf32>>
  // expected-error@+1 {{has rows of 2 dimensions, on which 'tensor<4x6x3xf32>' depends}}
  plan.matmul %a, %w -> %y loops [4, 5, 3, 6] reads [(d0, d1, d3), (d0, d3, d2)] {row_dims = 2 : i64} : !plan.ref<tensor<4x5x6xf32>>, !plan.ref<tensor<4x6x3xf32>> -> !plan.ref<tensor<4x5x3xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

plan.program @all mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<5x6xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<6x3xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<5x3xf32> <[0, 1]>
  %a = plan.view %0 : !plan.ref<tensor<5x6xf32>>
  %w = plan.view %1 : !plan.ref<tensor<6x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<5x3xf32>>
  // expected-error@+1 {{cannot have rows of 2 dimensions}}
  plan.matmul %a, %w -> %y loops [5, 3, 6] reads [(d0, d2), (d2, d1)] {row_dims = 2 : i64} : !plan.ref<tensor<5x6xf32>>, !plan.ref<tensor<6x3xf32>> -> !plan.ref<tensor<5x3xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

plan.program @transposed mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4x6x5xf32> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<6x3xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<4x5x3xf32> <[0, 1, 2]>
  %a = plan.view %0 : !plan.ref<tensor<4x6x5xf32>>
  %w = plan.view %1 : !plan.ref<tensor<6x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<4x5x3xf32>>
  // expected-error@+1 {{cannot have rows of 2 dimensions}}
  plan.matmul %a, %w -> %y loops [4, 5, 3, 6] reads [(d0, d3, d1), (d3, d2)] {row_dims = 2 : i64} : !plan.ref<tensor<4x6x5xf32>>, !plan.ref<tensor<6x3xf32>> -> !plan.ref<tensor<4x5x3xf32>>
}
