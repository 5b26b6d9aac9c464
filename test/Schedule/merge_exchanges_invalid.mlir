// RUN: dovetail-opt %s --split-input-file --plan-merge-exchanges --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]

!half = !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : (0, 1), (2, 4)}]>>>

plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %some = plan.view %a : !half
  %all = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{is impossible: elements [1, 2) of dimension 0 are needed at coordinate 0, but no rank holds them}}
  plan.exchange %some -> %all : !half -> !plan.ref<tensor<4xf32>>
}
