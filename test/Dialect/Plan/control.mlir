// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --plan-place-waits | FileCheck %s --check-prefix=WAITS

dovetail.mesh @mesh = ["y" = 2]

!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
!on = !plan.ref<tensor<i1>>

// An exchange belongs to one iteration, though nothing in it asks for what it brings.

// CHECK-LABEL: plan.program @main
// WAITS-LABEL: plan.program @main
plan.program @main mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<i1> <[]>
  %x = plan.view %0 "x" : !cut
  %wide = plan.view %0 : !halo
  %on = plan.view %1 "on" : !on
  plan.input "x" %x : !cut
  plan.input "on" %on : !on
  plan.output "y" %x : !cut
  // WAITS: plan.exchange {{.*}} {step_name = "before"}
  // WAITS-NEXT: plan.wait complete(%{{.*}}) read(%{{.*}}) {step_name = "before"}
  // WAITS-NEXT: plan.repeat
  plan.exchange %x -> %wide {step_name = "before"} : !cut -> !halo
  // CHECK: plan.repeat %[[ON:.*]] {step_name = "loop"} : !{{.*}}
  plan.repeat %on {step_name = "loop"} : !on
  // CHECK: plan.repeat %[[ON]] : !{{.*}}
  // WAITS: plan.repeat
  // WAITS-NEXT: plan.exchange {{.*}} {step_name = "inner"}
  // WAITS-NEXT: plan.wait complete(%{{.*}}) read(%{{.*}}) {step_name = "inner"}
  // WAITS-NEXT: plan.end
  plan.repeat %on : !on
  plan.exchange %x -> %wide {step_name = "inner"} : !cut -> !halo
  // CHECK: plan.end
  plan.end
  // CHECK: plan.if not %[[ON]] : !{{.*}}
  // WAITS: plan.if not
  // WAITS-NEXT: plan.exchange {{.*}} {step_name = "chosen"}
  // WAITS-NEXT: plan.wait complete(%{{.*}}) read(%{{.*}}) {step_name = "chosen"}
  // WAITS-NEXT: plan.end
  plan.if not %on : !on
  plan.exchange %x -> %wide {step_name = "chosen"} : !cut -> !halo
  plan.end
  // CHECK: plan.end {step_name = "loop"}
  plan.end {step_name = "loop"}
}
