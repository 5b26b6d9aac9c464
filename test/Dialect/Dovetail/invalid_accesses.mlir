// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a loop, such as 'd0', or 'floor'}}
func.func private @f() attributes {a = #dovetail.access<(x0)>}

// -----

// expected-error@+1 {{expected a loop, such as 'd0', or 'floor'}}
func.func private @f() attributes {a = #dovetail.access<(d256)>}

// -----

// expected-error@+1 {{expected a loop, such as 'd0', or 'floor'}}
func.func private @f() attributes {a = #dovetail.access<(u256)>}

// -----

// expected-error@+1 {{expected a number from 1 to 1099511627776}}
func.func private @f() attributes {a = #dovetail.access<(floor((d0) / 0))>}

// -----

// expected-error@+1 {{expected a number from -1099511627776 to 1099511627776}}
func.func private @f() attributes {a = #dovetail.access<(2000000000000*d0)>}

// -----

// expected-error@+1 {{expected '('}}
func.func private @f() attributes {a = #dovetail.access<(d0 + )>}

// -----

// expected-error@+1 {{divides too many times}}
func.func private @f() attributes {a = #dovetail.access<(((((((((((((((((((((((((((((((((((d0) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2)) mod 2))>}

// -----

// expected-error@+1 {{divides too many times}}
func.func private @f() attributes {a = #dovetail.access<(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(u0(d0 -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1) -> 1))>}

// -----

// What is written is small enough, but what it comes to is not.

// expected-error@+1 {{an access has a number beyond 1099511627776, 2199023255552*d0}}
func.func private @sum() attributes {a = #dovetail.access<(1099511627776*d0 + 1099511627776*d0)>}

// -----

// expected-error@+1 {{an access has a number beyond 1099511627776}}
func.func private @divisor() attributes {a = #dovetail.access<(floor((floor((d0) / 1099511627776)) / 1099511627776))>}

// -----

// expected-error@+1 {{expected an interval that is not empty, not [4, 4)}}
func.func private @f() attributes {a = #dovetail.access<(edge(d0, 4 to 4))>}

// -----

// expected-error@+1 {{expected 'to'}}
func.func private @f() attributes {a = #dovetail.access<(reflect(d0, 4))>}

// -----

// expected-error@+1 {{expected '->'}}
func.func private @f() attributes {a = #dovetail.access<(u0(d0, 4))>}

// -----

// expected-error@+1 {{expected integer value}}
func.func private @f() attributes {a = #dovetail.access<(u0(d0 -> ))>}

// -----

// expected-error@+1 {{results have 2 dimensions, but there are 1 loops}}
func.func private @f() attributes {a = #dovetail.definition<rank 2 loops [4] reads []>}

// -----

// expected-error@+1 {{read 0 depends on loop d1, which does not exist}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4] reads [0 : (d1)]>}

// -----

// expected-error@+1 {{a loop has -4 iterations}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [-4] reads []>}

// -----

// expected-error@+1 {{'part2' is not a kind of loop; expected parallel, reduction, part, whole, tap or scan}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4 part2] reads []>}

// -----

// expected-error@+1 {{'mean' is not a kind of reduction; expected sum, prod, max, min, owner or none}}
func.func private @f() attributes {a = #dovetail.definition<rank 0 loops [4 reduction(mean)] reads []>}

// -----

// expected-error@+1 {{loop 'd0' is a dimension of the result, and cannot be of kind tap}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4 tap] reads []>}

// -----

// expected-error@+1 {{loop 'd1' is not a dimension of the result, and cannot be of kind parallel}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4, 5] reads []>}

// -----

// expected-error@+1 {{loop 'd2' comes after a tap, but taps come last}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4, 5 tap, 3 reduction(sum)] reads []>}

// -----

// expected-error@+1 {{loop 'd1' is looked up by read 2, which does not exist}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4, 9 reduction(owner) by 2] reads [0 : (d1)]>}

// -----

// expected-error@+1 {{loop 'd1' is looked up, and must be a reduction}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [4, 9 whole by 0] reads [0 : (d1)]>}

// -----

// expected-error@+1 {{the ends of parts of 'd1' must ascend from 0 to the extent, 8}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [2, 8 part of d0 at [0, 9, 8]] reads []>}

// -----

// expected-error@+1 {{loop 'd1' has 3 parts, but 'd0' has 2 iterations}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [2, 8 part of d0 at [0, 3, 5, 8]] reads []>}

// -----

// expected-error@+1 {{there is no loop 'd7'}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [2, 8 part of d7 at [0, 3, 8]] reads []>}

// -----

// expected-error@+1 {{loop 'd0' is of kind scan, but nothing says how terms accumulate along it}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [2 scan] reads []>}

// -----

// expected-error@+1 {{loop 'd0' is scanned, and must be a dimension of the result of kind scan}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [2] reads [] scan d0>}

// -----

// expected-error@+1 {{the restarts of a scan must ascend from 0 to the extent, 6}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [6 scan] reads [] scan d0 restarts [0, 7]>}

// -----

// expected-error@+1 {{a scan starts from read 1, which does not exist}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [6 scan] reads [0 : (d0)] scan d0 start 1>}

// -----

// expected-error@+1 {{the written index has 2 dimensions, but results have 1}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [6] reads [0 : (d0)] writes (u0, d0) by 0>}

// -----

// expected-error@+1 {{read 3, which says where to write, does not exist}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [6] reads [0 : (d0)] writes (u0) by 3>}

// -----

// expected-error@+1 {{passes need terms to fold}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [6] reads [0 : (d0)] passes [sum : f32]>}

// -----

// expected-error@+1 {{'owner' is not a kind of pass; expected sum, prod, max or min}}
func.func private @f() attributes {a = #dovetail.definition<rank 1 loops [6] reads [0 : (d0)] passes [owner : f32] fold>}
