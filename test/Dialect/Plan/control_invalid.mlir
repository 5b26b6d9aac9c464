// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]

plan.program @no_end mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<i1> <[]>
  %on = plan.view %0 : !plan.ref<tensor<i1>>
  // expected-error@+1 {{has no plan.end}}
  plan.repeat %on : !plan.ref<tensor<i1>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.program @no_end_of_choice mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<i1> <[]>
  %on = plan.view %0 : !plan.ref<tensor<i1>>
  // expected-error@+1 {{has no plan.end}}
  plan.if %on : !plan.ref<tensor<i1>>
  plan.repeat %on : !plan.ref<tensor<i1>>
  plan.end
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.program @no_begin mesh @mesh target "cpu" {
  // expected-error@+1 {{ends no plan.repeat or plan.if}}
  plan.end
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.program @condition mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1xi1> <[0]>
  %on = plan.view %0 : !plan.ref<tensor<1xi1>>
  // expected-error@+1 {{has a condition of type 'tensor<1xi1>'; it must be a boolean of rank 0}}
  plan.repeat %on : !plan.ref<tensor<1xi1>>
  plan.end
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.program @prologue mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<i1> <[]>
  %on = plan.view %0 : !plan.ref<tensor<i1>>
  plan.prologue {
    // expected-error@+1 {{expects parent op 'plan.program'}}
    plan.repeat %on : !plan.ref<tensor<i1>>
    plan.end
  }
}

// -----

func.func @types(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{makes 'tensor<4xf32>' of 'tensor<5xf32>': a loop-carried value is split alike in each iteration}}
  plan.end_loop %a becomes %b : tensor<4xf32> becomes tensor<5xf32>
  return
}
