// RUN: dovetail-opt %s --split-input-file --plan-merge-exchanges | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --plan-merge-exchanges --plan-merge-exchanges | FileCheck %s

// The parts of a tuple are one exchange, which is by messages, whatever each would be. What is large stays alone.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x10xf32>>
!part = !plan.ref<tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!large = !plan.ref<tensor<400x100xf32>>
!largePart = !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{"y" : 0, 200, 400}, {}]>>>

// CHECK-LABEL: plan.program @tuple
plan.program @tuple mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[1, 0]>
  %1 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %4 = plan.buffer arena tensor<400x100xf32, #dovetail.sharding<@mesh, [{"y" : 0, 200, 400}, {}]>> <[0, 1]>
  %5 = plan.buffer arena tensor<400x100xf32> <[0, 1]>
  // CHECK-DAG: %[[VALUE:.*]] = plan.view %{{.*}} "value"
  %value = plan.view %0 "value" : !part
  // CHECK-DAG: %[[INDEX:.*]] = plan.view %{{.*}} "index"
  %index = plan.view %1 "index" : !part
  // CHECK-DAG: %[[VALUES:.*]] = plan.view %{{.*}} "values"
  %values = plan.view %2 "values" : !all
  %picture = plan.view %4 : !largePart
  %pictures = plan.view %5 : !large
  // CHECK-DAG: %[[INDICES:.*]] = plan.view %{{.*}} "indices"
  // CHECK: plan.exchange %[[VALUE]], %[[INDEX]] -> %[[VALUES]], %[[INDICES]] in [1, 0], [0, 1] {step_name = "a, b"}
  plan.exchange %value -> %values in [1, 0] {step_name = "a"} : !part -> !all
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} by all_gather {step_name = "large"}
  plan.exchange %picture -> %pictures by all_gather {step_name = "large"} : !largePart -> !large
  // A view that comes later moves with it.
  %indices = plan.view %3 "indices" : !all
  // CHECK-NOT: plan.exchange
  plan.exchange %index -> %indices by all_gather {step_name = "b"} : !part -> !all
}

// -----

// What one step wrote is exchanged at once, though other steps come between. What another wrote later is not: it would
// have to be computed first, or the steps between would wait.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x10xf32>>
!part = !plan.ref<tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

plan.kernel @split(%x: tensor<8x10xf32>) layouts [<[0, 1], [?, 10]>] -> [<[0, 1], [?, 10]>, <[0, 1], [?, 10]>] {
  %0 = dovetail.neg %x : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %1 = dovetail.abs %x : (tensor<8x10xf32>) -> tensor<8x10xf32>
  plan.yield %0, %1 : tensor<8x10xf32>, tensor<8x10xf32>
}
plan.kernel @neg(%x: tensor<8x10xf32>) layouts [<[0, 1], [?, 10]>] -> [<[0, 1], [?, 10]>] {
  %0 = dovetail.neg %x : (tensor<8x10xf32>) -> tensor<8x10xf32>
  plan.yield %0 : tensor<8x10xf32>
}

// CHECK-LABEL: plan.program @steps
plan.program @steps mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %3 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %4 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %5 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %6 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %x = plan.view %0 : !part
  %a = plan.view %1 : !part
  %b = plan.view %2 : !part
  %c = plan.view %3 : !part
  %allA = plan.view %4 : !all
  %allB = plan.view %5 : !all
  %allC = plan.view %6 : !all
  // CHECK: plan.launch @split
  plan.launch @split(%x) -> (%a, %b) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!part) -> (!part, !part)
  // CHECK-NEXT: plan.exchange %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} :
  plan.exchange %a -> %allA : !part -> !all
  // CHECK-NEXT: plan.launch @neg
  plan.launch @neg(%b) -> (%c) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!part) -> (!part)
  plan.exchange %b -> %allB : !part -> !all
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} :
  // CHECK-NOT: plan.exchange
  plan.exchange %c -> %allC : !part -> !all
}

// -----

// What the same step waits for begins at once, with the last of it, though other steps wrote it. What another step reads
// before does not wait, and what the steps between overwrite is read before that.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x10xf32>>
!part = !plan.ref<tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

plan.kernel @neg(%x: tensor<8x10xf32>) layouts [<[0, 1], [?, 10]>] -> [<[0, 1], [?, 10]>] {
  %0 = dovetail.neg %x : (tensor<8x10xf32>) -> tensor<8x10xf32>
  plan.yield %0 : tensor<8x10xf32>
}
plan.kernel @add(%x: tensor<8x10xf32>, %y: tensor<8x10xf32>) layouts [<[0, 1], [8, 10]>, <[0, 1], [8, 10]>] -> [<[0, 1], [?, 10]>] {
  %0 = dovetail.add %x, %y : (tensor<8x10xf32>, tensor<8x10xf32>) -> tensor<8x10xf32>
  plan.yield %0 : tensor<8x10xf32>
}

// CHECK-LABEL: plan.program @delayed
plan.program @delayed mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %3 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %4 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %5 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %6 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %x = plan.view %0 : !part
  %a = plan.view %1 : !part
  %b = plan.view %2 : !part
  %c = plan.view %3 : !part
  %allA = plan.view %4 : !all
  %allB = plan.view %5 : !all
  %d = plan.view %6 : !part
  // CHECK: plan.launch @neg
  plan.launch @neg(%x) -> (%a) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!part) -> (!part)
  plan.exchange %a -> %allA {step_name = "a"} : !part -> !all
  // CHECK-NEXT: plan.launch @neg
  plan.launch @neg(%a) -> (%b) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!part) -> (!part)
  // CHECK-NEXT: plan.exchange %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} {step_name = "a, b"}
  plan.exchange %b -> %allB {step_name = "b"} : !part -> !all
  // CHECK-NEXT: plan.launch @neg
  plan.launch @neg(%b) -> (%c) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!part) -> (!part)
  // CHECK-NEXT: plan.launch @add
  plan.launch @add(%allA, %allB) -> (%d) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!all, !all) -> (!part)

  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "read before"}
  plan.exchange %c -> %allA {step_name = "read before"} : !part -> !all
  // CHECK-NEXT: plan.launch @add
  plan.launch @add(%allA, %allA) -> (%a) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!all, !all) -> (!part)
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "read then"}
  plan.exchange %a -> %allB {step_name = "read then"} : !part -> !all
  // CHECK-NEXT: plan.launch @add
  plan.launch @add(%allA, %allB) -> (%d) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!all, !all) -> (!part)

  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "overwritten"}
  plan.exchange %a -> %allA {step_name = "overwritten"} : !part -> !all
  // CHECK-NEXT: plan.launch @neg
  plan.launch @neg(%d) -> (%a) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!part) -> (!part)
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "behind"}
  plan.exchange %d -> %allB {step_name = "behind"} : !part -> !all
  // CHECK-NEXT: plan.launch @add
  plan.launch @add(%allA, %allB) -> (%c) loops [8 by <{"y" : 0, 4, 8}>, 10] : (!all, !all) -> (!part)
}

// -----

// Together they bring no rank 64 KiB: two of 30 000 bytes do not, a third of them would. What no step has written has no
// common origin.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<100x150xf32>>
!part = !plan.ref<tensor<100x150xf32, #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {}]>>>

plan.kernel @neg(%x: tensor<100x150xf32>) layouts [<[0, 1], [?, 150]>] -> [<[0, 1], [?, 150]>] {
  %0 = dovetail.neg %x : (tensor<100x150xf32>) -> tensor<100x150xf32>
  plan.yield %0 : tensor<100x150xf32>
}

// CHECK-LABEL: plan.program @bytes
plan.program @bytes mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<100x150xf32, #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<100x150xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<100x150xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<100x150xf32> <[0, 1]>
  %4 = plan.buffer arena tensor<100x150xf32> <[0, 1]>
  %5 = plan.buffer arena tensor<100x150xf32> <[0, 1]>
  %x = plan.view %0 : !part
  %a = plan.view %1 : !all
  %b = plan.view %2 : !all
  %c = plan.view %3 : !all
  %n = plan.view %4 : !all
  %d = plan.view %5 : !all
  // CHECK: plan.exchange %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} :
  plan.exchange %x -> %a : !part -> !all
  plan.exchange %x -> %b : !part -> !all
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} :
  plan.exchange %x -> %c : !part -> !all
  // CHECK-NEXT: plan.launch @neg
  plan.launch @neg(%c) -> (%n) loops [100, 150] : (!all) -> (!all)
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} :
  plan.exchange %x -> %d : !part -> !all
}

// -----

// Nothing moves over a step that has to do with it, and one exchange never reads what it writes.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x10xf32>>
!part = !plan.ref<tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

// CHECK-LABEL: plan.program @dependent
plan.program @dependent mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %part = plan.view %0 : !part
  %all = plan.view %0 : !all
  %other = plan.view %1 : !all
  %third = plan.view %2 : !all
  // It writes what the next one reads.
  // CHECK: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "first"}
  plan.exchange %part -> %all {step_name = "first"} : !part -> !all
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "second"}
  plan.exchange %part -> %other {step_name = "second"} : !part -> !all
  // The reorder reads what the second one writes.
  // CHECK-NEXT: plan.reorder
  plan.reorder %other -> %third : !all -> !all
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} {step_name = "third"}
  plan.exchange %part -> %other {step_name = "third"} : !part -> !all
}

// -----

// In the prologue, too, and apart from the other steps.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8xf32>>
!sum = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>>

// CHECK-LABEL: plan.program @prologue
plan.program @prologue mesh @mesh target "cpu" {
  %0 = plan.buffer persistent tensor<8xf32> <[0]>
  %1 = plan.buffer persistent tensor<8xf32> <[0]>
  %2 = plan.buffer persistent tensor<8xf32> <[0]>
  %3 = plan.buffer arena tensor<8xf32> <[0]>
  %sum = plan.view %0 : !sum
  %a = plan.view %1 : !all
  %b = plan.view %2 : !all
  %c = plan.view %3 : !all
  // CHECK: plan.prologue {
  plan.prologue {
    // CHECK-NEXT: plan.exchange %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} {step_name = "once"}
    plan.exchange %sum -> %a by all_reduce {step_name = "once"} : !sum -> !all
    plan.exchange %sum -> %b by all_reduce {step_name = "once"} : !sum -> !all
  }
  // CHECK: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} by all_reduce {step_name = "each time"}
  plan.exchange %sum -> %c by all_reduce {step_name = "each time"} : !sum -> !all
}

// -----

// What is waited for already stays alone.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x10xf32>>
!part = !plan.ref<tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

// CHECK-LABEL: plan.program @waiting
plan.program @waiting mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<8x10xf32> <[0, 1]>
  %part = plan.view %0 : !part
  %a = plan.view %1 : !all
  %b = plan.view %2 : !all
  // CHECK: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} :
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} :
  plan.exchange %part -> %a : !part -> !all
  %event = plan.exchange %part -> %b : !part -> !all
  plan.wait complete(%event) read(%event)
}

// -----

// Gathers among many ranks become one of packed parts; what is large does where one step reads both. Sums of many ranks
// stay collectives.

dovetail.mesh @mesh = ["y" = 16]

!all = !plan.ref<tensor<64x10xf32>>
!part = !plan.ref<tensor<64x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64}, {}]>>>
!large = !plan.ref<tensor<64x600xf32>>
!largePart = !plan.ref<tensor<64x600xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64}, {}]>>>
!sum = !plan.ref<tensor<64x10xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>>

plan.kernel @add(%x: tensor<64x600xf32>, %y: tensor<64x600xf32>) layouts [<[0, 1], [64, 600]>, <[0, 1], [64, 600]>] -> [<[0, 1], [64, 600]>] {
  %0 = dovetail.add %x, %y : (tensor<64x600xf32>, tensor<64x600xf32>) -> tensor<64x600xf32>
  plan.yield %0 : tensor<64x600xf32>
}
plan.kernel @neg(%x: tensor<64x600xf32>) layouts [<[0, 1], [64, 600]>] -> [<[0, 1], [64, 600]>] {
  %0 = dovetail.neg %x : (tensor<64x600xf32>) -> tensor<64x600xf32>
  plan.yield %0 : tensor<64x600xf32>
}

// CHECK-LABEL: plan.program @many
plan.program @many mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<64x10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<64x10xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<64x10xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<64x600xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64}, {}]>> <[0, 1]>
  %4 = plan.buffer arena tensor<64x600xf32> <[0, 1]>
  %5 = plan.buffer arena tensor<64x600xf32> <[0, 1]>
  %6 = plan.buffer arena tensor<64x600xf32> <[0, 1]>
  %7 = plan.buffer arena tensor<64x10xf32> <[0, 1]>
  %8 = plan.buffer arena tensor<64x10xf32> <[0, 1]>
  %9 = plan.buffer arena tensor<64x10xf32> <[0, 1]>
  %10 = plan.buffer arena tensor<64x600xf32> <[0, 1]>
  %part = plan.view %0 : !part
  %a = plan.view %1 : !all
  %b = plan.view %2 : !all
  %largePart = plan.view %3 : !largePart
  %c = plan.view %4 : !large
  %d = plan.view %5 : !large
  %e = plan.view %6 : !large
  %sum = plan.view %7 : !sum
  %f = plan.view %8 : !all
  %g = plan.view %9 : !all
  %h = plan.view %10 : !large
  // CHECK: plan.exchange %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} by packed_gather {step_name = "small"}
  plan.exchange %part -> %a by all_gather {step_name = "small"} : !part -> !all
  plan.exchange %part -> %b by all_gather {step_name = "small"} : !part -> !all
  // CHECK-NEXT: plan.exchange %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} by packed_gather {step_name = "read at once"}
  plan.exchange %largePart -> %c by all_gather {step_name = "read at once"} : !largePart -> !large
  plan.exchange %largePart -> %d by packed_gather {step_name = "read at once"} : !largePart -> !large
  plan.launch @add(%c, %d) -> (%e) loops [64, 600] : (!large, !large) -> (!large)
  // CHECK: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} by all_gather {step_name = "read first"}
  plan.exchange %largePart -> %c by all_gather {step_name = "read first"} : !largePart -> !large
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} by all_gather {step_name = "read later"}
  plan.exchange %largePart -> %d by all_gather {step_name = "read later"} : !largePart -> !large
  plan.launch @neg(%c) -> (%e) loops [64, 600] : (!large) -> (!large)
  plan.launch @neg(%d) -> (%h) loops [64, 600] : (!large) -> (!large)
  // CHECK: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} by all_reduce {step_name = "one"}
  plan.exchange %sum -> %f by all_reduce {step_name = "one"} : !sum -> !all
  // CHECK-NEXT: plan.exchange %{{[a-z0-9_]*}} -> %{{[a-z0-9_]*}} by all_reduce {step_name = "other"}
  plan.exchange %sum -> %g by all_reduce {step_name = "other"} : !sum -> !all
}
