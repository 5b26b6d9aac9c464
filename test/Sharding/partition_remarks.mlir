// RUN: dovetail-opt %s --dovetail-partition --verify-diagnostics

// What is split and cannot stay so is gathered, and that is said.

dovetail.mesh @mesh = ["y" = 2]
!columns = tensor<100x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6}]>>
!whole = tensor<600xf32, #dovetail.sharding<@mesh, [{}]>>

func.func @merges_a_minor_dimension(%x: !columns) -> !whole {
  // expected-remark@+1 {{is computed whole by all ranks along axis "y", which splits its operands: ranks gather 2400 bytes first}}
  %0 = dovetail.reshape %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!columns) -> !whole
  // Nothing is gathered here.
  %1 = dovetail.relu %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!whole) -> !whole
  return %1 : !whole
}

!short_columns = tensor<10x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6}]>>
!short_whole = tensor<60xf32, #dovetail.sharding<@mesh, [{}]>>

// Nothing is said of 240 bytes.
func.func @is_short(%x: !short_columns) -> !short_whole {
  %0 = dovetail.reshape %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!short_columns) -> !short_whole
  return %0 : !short_whole
}
