// RUN: dovetail-opt %s --split-input-file --plan-choose-exchanges | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --plan-choose-exchanges --plan-choose-exchanges | FileCheck %s

// Equal parts that follow each other are gathered; uneven ones, and an empty one, are messages.

dovetail.mesh @mesh = ["y" = 3]

!all = !plan.ref<tensor<12x10xf32>>
!even = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8, 12}, {}]>>>
!uneven = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 9, 12}, {}]>>>
!empty = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 0, 6, 12}, {}]>>>

// CHECK-LABEL: plan.program @gather
plan.program @gather mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<12x10xf32> <[0, 1]>
  %b = plan.buffer arena tensor<12x10xf32> <[0, 1]>
  %all = plan.view %a : !all
  %even = plan.view %b : !even
  %uneven = plan.view %b : !uneven
  %empty = plan.view %b : !empty
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by all_gather {step_name = "even"}
  plan.exchange %even -> %all {step_name = "even"} : !even -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "uneven"}
  plan.exchange %uneven -> %all {step_name = "uneven"} : !uneven -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "empty"}
  plan.exchange %empty -> %all {step_name = "empty"} : !empty -> !all
  // What was chosen before does not count.
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "again"}
  plan.exchange %empty -> %all by all_gather in [1, 0] {step_name = "again"} : !empty -> !all
}

// -----

// Four ranks or more pack what they gather otherwise: small parts of any size, columns, and parts of two dimensions.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

!all = !plan.ref<tensor<12x10xf32>>
!empty = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y"+"x" : 0, 0, 4, 9, 12}, {}]>>>
!columns = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{}, {"x"+"y" : 0, 3, 5, 8, 10}]>>>
!both = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"x" : 0, 6, 12}, {"y" : 0, 5, 10}]>>>
!pairs = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"x" : 0, 6, 12}, {}]>>>

// CHECK-LABEL: plan.program @packed
plan.program @packed mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<12x10xf32> <[0, 1]>
  %b = plan.buffer arena tensor<12x10xf32> <[1, 0]>
  %all = plan.view %a : !all
  %empty = plan.view %b : !empty
  %columns = plan.view %b : !columns
  %both = plan.view %b : !both
  %pairs = plan.view %a : !pairs
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by packed_gather in [1, 0] {step_name = "rows"}
  plan.exchange %empty -> %all {step_name = "rows"} : !empty -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by packed_gather {{.*}}{step_name = "columns"}
  plan.exchange %columns -> %all {step_name = "columns"} : !columns -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by packed_gather {{.*}}{step_name = "both"}
  plan.exchange %both -> %all {step_name = "both"} : !both -> !all
  // Among two ranks messages are as few.
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} in [1, 0] {step_name = "pairs"}
  plan.exchange %both -> %pairs {step_name = "pairs"} : !both -> !pairs
}

// -----

// Constants are copied to devices: each rank has its part of them without gaps. On hosts they are read where the artifact
// is mapped, where parts of rows are not in one piece.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

!columns = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 5, 10}]>>>
!pieces = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 12}, {"x" : 0, 5, 10}]>>>
!all = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{}, {}]>>>
!rows = !plan.ref<tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 12}, {}]>>>

// CHECK-LABEL: plan.program @mapped
plan.program @mapped mesh @mesh target "cpu" {
  %a = plan.buffer constant tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 12}, {"x" : 0, 5, 10}]>> <[0, 1]> = dense_resource<w> : tensor<12x10xf32>
  %b = plan.buffer arena tensor<12x10xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 5, 10}]>> <[0, 1]>
  %c = plan.buffer constant tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 12}, {}]>> <[0, 1]> = dense_resource<v> : tensor<12x10xf32>
  %d = plan.buffer arena tensor<12x10xf32> <[0, 1]>
  %pieces = plan.view %a : !pieces
  %columns = plan.view %b : !columns
  %rows = plan.view %c : !rows
  %all = plan.view %d : !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "columns"}
  plan.exchange %pieces -> %columns {step_name = "columns"} : !pieces -> !columns
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by all_gather {step_name = "rows"}
  plan.exchange %rows -> %all {step_name = "rows"} : !rows -> !all
}

// CHECK-LABEL: plan.program @copied
plan.program @copied mesh @mesh target "emulated" on device {
  %a = plan.buffer constant tensor<12x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 12}, {"x" : 0, 5, 10}]>> <[0, 1]> = dense_resource<w> : tensor<12x10xf32>
  %b = plan.buffer arena tensor<12x10xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 5, 10}]>> <[0, 1]>
  %pieces = plan.view %a : !pieces
  %columns = plan.view %b : !columns
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by all_gather {step_name = "columns"}
  plan.exchange %pieces -> %columns {step_name = "columns"} : !pieces -> !columns
}

// -----

// Parts lie one after another if the dimension that is cut is outermost in memory; messages have the source's order.

dovetail.mesh @mesh = ["y" = 3]

!all = !plan.ref<tensor<12x9xf32>>
!columns = !plan.ref<tensor<12x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6, 9} ]>>>
!halo = !plan.ref<tensor<12x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 4), (2, 7), (5, 9)} ]>>>

// CHECK-LABEL: plan.program @formats
plan.program @formats mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<12x9xf32> <[0, 1]>
  %b = plan.buffer arena tensor<12x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6, 9} ]>> <[0, 1]>
  %c = plan.buffer arena tensor<12x9xf32> <[1, 0]>
  %d = plan.buffer arena tensor<12x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6, 9} ]>> <[1, 0]>
  %e = plan.buffer arena tensor<12x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 4), (2, 7), (5, 9)} ]>> <[1, 0]>
  %rows = plan.view %a : !all
  %rowParts = plan.view %b : !columns
  %turned = plan.view %c : !all
  %turnedParts = plan.view %d : !columns
  %halo = plan.view %e : !halo
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "strips"}
  plan.exchange %rowParts -> %rows {step_name = "strips"} : !columns -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by all_gather in [1, 0] {step_name = "rows"}
  plan.exchange %turnedParts -> %turned {step_name = "rows"} : !columns -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "turns"}
  plan.exchange %rowParts -> %turned {step_name = "turns"} : !columns -> !all
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} in [1, 0] {step_name = "halo"}
  plan.exchange %turnedParts -> %halo {step_name = "halo"} : !columns -> !halo
}

// -----

// Less than 64 KiB is reduced at once, by groups of an axis or by all.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

!all = !plan.ref<tensor<127x129xf32>>
!sum = !plan.ref<tensor<127x129xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y", "x"]>>>
!rest = !plan.ref<tensor<127x129xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["x"]>>>
!part = !plan.ref<tensor<127x129xf32, #dovetail.sharding<@mesh, [{"y" : 0, 63, 127}, {}]>>>
!partial = !plan.ref<tensor<127x129xf32, #dovetail.sharding<@mesh, [{"y" : 0, 63, 127}, {}], partial = sum ["x"]>>>

// CHECK-LABEL: plan.program @small
plan.program @small mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<127x129xf32> <[0, 1]>
  %b = plan.buffer arena tensor<127x129xf32> <[0, 1]>
  %sum = plan.view %a : !sum
  %partial = plan.view %a : !partial
  %all = plan.view %b : !all
  %rest = plan.view %b : !rest
  %part = plan.view %b : !part
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by all_reduce {step_name = "all"}
  plan.exchange %sum -> %all {step_name = "all"} : !sum -> !all
  // CHECK-NEXT: plan.exchange %{{.*}} -> %{{.*}} by all_reduce {step_name = "some"}
  plan.exchange %sum -> %rest {step_name = "some"} : !sum -> !rest
  // CHECK-NEXT: plan.exchange %{{.*}} -> %{{.*}} by all_reduce {step_name = "halves"}
  plan.exchange %partial -> %part {step_name = "halves"} : !partial -> !part
  // An all-reduce and a gather at once are no collective.
  // CHECK-NEXT: plan.exchange %{{.*}} -> %{{.*}} {step_name = "both"}
  plan.exchange %partial -> %all {step_name = "both"} : !partial -> !all
}

// -----

// From 64 KiB on, each rank of a group reduces a part of its own, which all then collect: a quarter of the rows; a half of
// the rows of each half; the columns, where they are outermost in memory. Equal parts are collectives, others messages.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

!sum = !plan.ref<tensor<128x128xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y", "x"]>>>
!all = !plan.ref<tensor<128x128xf32>>
!halves = !plan.ref<tensor<256x128xf32, #dovetail.sharding<@mesh, [{"y" : 0, 128, 256}, {}], partial = max ["x"]>>>
!half = !plan.ref<tensor<256x128xf32, #dovetail.sharding<@mesh, [{"y" : 0, 128, 256}, {}]>>>
!sum16 = !plan.ref<tensor<255x129xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["x"]>>>
!all16 = !plan.ref<tensor<255x129xf16>>

// CHECK-DAG: ![[QUARTERS:.*]] = !plan.ref<tensor<128x128xf32, #dovetail.sharding<@mesh, [{}, {"y"+"x" : 0, 32, 64, 96, 128}]>>>
// CHECK-DAG: ![[HALVES:.*]] = !plan.ref<tensor<256x128xf32, #dovetail.sharding<@mesh, [{"y"+"x" : 0, 64, 128, 192, 256}, {}]>>>
// CHECK-DAG: ![[HALVES16:.*]] = !plan.ref<tensor<255x129xf16, #dovetail.sharding<@mesh, [{"x" : 0, 128, 255}, {}]>>>
// CHECK-LABEL: plan.program @large
plan.program @large mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<128x128xf32> <[0, 1]>
  // CHECK: %[[TOTAL:.*]] = plan.buffer arena tensor<128x128xf32> <[1, 0]>
  %b = plan.buffer arena tensor<128x128xf32> <[1, 0]>
  %c = plan.buffer arena tensor<256x128xf32, #dovetail.sharding<@mesh, [{"y" : 0, 128, 256}, {}]>> <[0, 1]>
  %d = plan.buffer arena tensor<256x128xf32, #dovetail.sharding<@mesh, [{"y" : 0, 128, 256}, {}]>> <[0, 1]>
  %e = plan.buffer arena tensor<255x129xf16> <[0, 1]>
  %f = plan.buffer arena tensor<255x129xf16> <[0, 1]>
  %g = plan.buffer arena tensor<128x128xf32> <[1, 0]>
  %sum = plan.view %a : !sum
  // CHECK: %[[ALL:.*]] = plan.view %[[TOTAL]]
  // CHECK-NEXT: %[[QUARTER:.*]] = plan.view %[[TOTAL]] : ![[QUARTERS]]
  // CHECK-NEXT: %[[OTHER:.*]] = plan.view %[[TOTAL]] : ![[QUARTERS]]
  %all = plan.view %b : !all
  %halves = plan.view %c : !halves
  // CHECK: %[[PARTIAL:.*]] = plan.view
  // CHECK-NEXT: %[[HALF:.*]] = plan.view
  // CHECK-NEXT: %[[SPLIT:.*]] = plan.view %{{.*}} : ![[HALVES]]
  %half = plan.view %d : !half
  %sum16 = plan.view %e : !sum16
  // CHECK: %[[SUM16:.*]] = plan.view
  // CHECK-NEXT: %[[ALL16:.*]] = plan.view
  // CHECK-NEXT: %[[SPLIT16:.*]] = plan.view %{{.*}} : ![[HALVES16]]
  %all16 = plan.view %f : !all16
  %turned = plan.view %g : !sum

  // Both memories have columns outermost.
  // CHECK: plan.exchange %{{.*}} -> %[[OTHER]] by reduce_scatter in [1, 0] {step_name = "columns"}
  // CHECK-NEXT: plan.exchange %[[OTHER]] -> %[[ALL]] by all_gather in [1, 0] {step_name = "columns"}
  plan.exchange %turned -> %all {step_name = "columns"} : !sum -> !all
  // CHECK-NEXT: plan.exchange %{{.*}} -> %[[QUARTER]] {step_name = "turned"}
  // CHECK-NEXT: plan.exchange %[[QUARTER]] -> %[[ALL]] by all_gather in [1, 0] {step_name = "turned"}
  plan.exchange %sum -> %all {step_name = "turned"} : !sum -> !all
  // CHECK-NEXT: plan.exchange %[[PARTIAL]] -> %[[SPLIT]] by reduce_scatter {step_name = "halves"}
  // CHECK-NEXT: plan.exchange %[[SPLIT]] -> %[[HALF]] by all_gather {step_name = "halves"}
  plan.exchange %halves -> %half {step_name = "halves"} : !halves -> !half
  // CHECK-NEXT: plan.exchange %[[SUM16]] -> %[[SPLIT16]] {step_name = "f16"}
  // CHECK-NEXT: plan.exchange %[[SPLIT16]] -> %[[ALL16]] {step_name = "f16"}
  plan.exchange %sum16 -> %all16 {step_name = "f16"} : !sum16 -> !all16
}

// -----

// A reduce-scatter has one phase already. In the prologue it is as elsewhere.

dovetail.mesh @mesh = ["y" = 2]

!sum = !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>>
!part = !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{"y" : 0, 200, 400}, {}]>>>
!uneven = !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{"y" : 0, 100, 400}, {}]>>>
!windows = !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{"y" : (0, 210), (190, 400)}, {}]>>>

// CHECK-LABEL: plan.program @scatter
plan.program @scatter mesh @mesh target "cpu" {
  %a = plan.buffer persistent tensor<400x100xf32> <[0, 1]>
  %b = plan.buffer persistent tensor<400x100xf32> <[0, 1]>
  %sum = plan.view %a : !sum
  %part = plan.view %b : !part
  %uneven = plan.view %b : !uneven
  %windows = plan.view %b : !windows
  plan.prologue {
    // CHECK: plan.exchange %{{.*}} -> %{{.*}} by reduce_scatter {step_name = "even"}
    plan.exchange %sum -> %part {step_name = "even"} : !sum -> !part
    // CHECK-NEXT: plan.exchange %{{.*}} -> %{{.*}} {step_name = "uneven"}
    plan.exchange %sum -> %uneven {step_name = "uneven"} : !sum -> !uneven
    // CHECK-NEXT: plan.exchange %{{.*}} -> %{{.*}} {step_name = "windows"}
    plan.exchange %sum -> %windows {step_name = "windows"} : !sum -> !windows
  }
}

// -----

// What is waited for already stays what it was when waits were placed.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x10xf32>>
!part = !plan.ref<tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

// CHECK-LABEL: plan.program @waiting
plan.program @waiting mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %part = plan.view %0 : !part
  %all = plan.view %0 : !all
  // CHECK: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} :
  %event = plan.exchange %part -> %all : !part -> !all
  plan.wait complete(%event) read(%event)
}
