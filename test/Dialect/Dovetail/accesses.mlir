// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s

// Indices in their normal form: sums, quotients and remainders, and elements at whole quotients.
// CHECK-LABEL: func.func private @sums
func.func private @sums() attributes {
  // CHECK-SAME: a = #dovetail.access<(d0, 3*d0 + d4, exact((d2 - d5 + 1) / 2))>
  a = #dovetail.access<(d0, d4 + 3 * d0, exact((d2 + 1 - d5) / 2))>,
  // CHECK-SAME: b = #dovetail.access<(d3 + 4*floor((d1) / 2), ((d1) mod 2))>
  b = #dovetail.access<(4*floor((d1) / 2) + d3, ((d1) mod 2))>,
  // CHECK-SAME: c = #dovetail.access<()>
  c = #dovetail.access<()>,
  // CHECK-SAME: d = #dovetail.access<(0, -5, -2*d0 - 3*((d1 + 1) mod 4))>
  d = #dovetail.access<(d0 - d0, -5, - 2*d0 + -3*((5 + d1) mod 4))>,
  // CHECK-SAME: e = #dovetail.access<(floor((3*d0 + ((d1 + 2) mod 5)) / 4))>
  e = #dovetail.access<(floor((3*d0 + ((d1 + 7) mod 5)) / 4))>
}

// What lies around an interval: the nearest element, the mirror image, and its repetition.
// CHECK-LABEL: func.func private @borders
func.func private @borders() attributes {
  // CHECK-SAME: a = #dovetail.access<(edge(d0 - 1, 0 to 4), reflect(d1 + d2 - 2, 0 to 8))>
  a = #dovetail.access<(edge(d0 - 1, 0 to 4), reflect(d1 - 2 + d2, 0 to 8))>,
  // CHECK-SAME: b = #dovetail.access<(wrap(2*d0 - 3, 1 to 7), edge(5, 2 to 3))>
  b = #dovetail.access<(wrap(2*d0 - 3, 1 to 7), edge(5, 2 to 3))>
}

// Values that are known when an operation runs, and tables in which they are.
// CHECK-LABEL: func.func private @unknowns
func.func private @unknowns() attributes {
  // CHECK-SAME: a = #dovetail.access<(u0, d0 + 2*u1)>
  a = #dovetail.access<(u0, 2*u1 + d0)>,
  // CHECK-SAME: b = #dovetail.access<(u0(d1 -> 0 to 3, 5, -2 to 7))>
  b = #dovetail.access<(u0(d1 -> 0 to 3, 5 to 5, -2 to 7))>,
  // CHECK-SAME: c = #dovetail.access<(edge(u0(d0 + d1 -> 4, 2 to 1) + 1, 0 to 6))>
  c = #dovetail.access<(edge(1 + u0(d1 + d0 -> 4, 2 to 1), 0 to 6))>,
  // CHECK-SAME: d = #dovetail.access<(u1(u0 -> 1, 2), floor((u0) / 2))>
  d = #dovetail.access<(u1(u0 -> 1, 2), floor((u0) / 2))>
}

// Definitions as operations have them in their generic form.
// CHECK-LABEL: func.func private @definitions
func.func private @definitions() attributes {
  // CHECK-SAME: a = #dovetail.definition<rank 2 loops [4, 6, 8 reduction(sum), 3 tap] reads [0 : (d0, d1 + d3 - 1, d2), 1 : (d3)] fold product>
  a = #dovetail.definition<rank 2 loops [4, 6, 8 reduction(sum), 3 tap] reads [0 : (d0, d1 + d3 - 1, d2), 1 : (d3)]
                           fold product>,
  // CHECK-SAME: b = #dovetail.definition<rank 1 loops [5 scan] reads [0 : (d0), 1 : (u0)] scan d0 restarts [0, 2, 5] reversed exclusive start 1>
  b = #dovetail.definition<rank 1 loops [5 scan] reads [0 : (d0), 1 : (u0)] scan d0 restarts [0, 2, 5] reversed exclusive start 1>,
  // CHECK-SAME: c = #dovetail.definition<rank 1 loops [5, 3 tap] reads [0 : (d0), 1 : (d1), 2 : (d1)] writes (u0) by 2 lines [0]>
  c = #dovetail.definition<rank 1 loops [5, 3 tap] reads [0 : (d0), 1 : (d1), 2 : (d1)] writes (u0) by 2 lines [0]>,
  // CHECK-SAME: d = #dovetail.definition<rank 1 loops [2, 8 part of d0 at [0, 3, 8]] reads [0 : (u0(d0 -> 0 to 2, 3 to 7))] passes [max : f32, sum : f32] fold>
  d = #dovetail.definition<rank 1 loops [2, 8 part of d0 at [0, 3, 8]] reads [0 : (u0(d0 -> 0 to 2, 3 to 7))]
                           passes [max : f32, sum : f32] fold>,
  // CHECK-SAME: e = #dovetail.definition<rank 1 loops [2, 9 reduction(owner) by 1, 4 whole(none)] reads [0 : (d1, d2), 1 : (d0)]>
  e = #dovetail.definition<rank 1 loops [2, 9 reduction(owner) by 1, 4 whole(none)] reads [0 : (d1, d2), 1 : (d0)]>
}
