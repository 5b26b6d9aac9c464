// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

// The text of loops, reads and combiners.

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{two loops are called 'y'}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4, y = 3 tap] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{'floor' cannot be the name of a loop: it is a keyword of accesses}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [floor = 4] reads [0 : (floor)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{a loop has -3 iterations}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4, k = -3 tap] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{there is no loop 'z'}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (z)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+3 {{'mean' does not combine terms; expected sum, prod, max, min or a region}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      combine mean body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{loop 'k' is not a dimension of the result, and cannot be of kind parallel}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4, k = 3] reads [0 : (y)] combine sum body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// Operands and results.

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{reads operand 2 in read 0, but has 1}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [2 : (y)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 2 indices in read 0, of operand 0, which is 'tensor<4xf32>'}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y, 0)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has loop 'y' of extent 3, but dimension 0 of 'tensor<4xf32>' has 4}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 3] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has results 'tensor<4xf32>' and 'tensor<5xf32>', which must have one shape}}
  %0:2 = dovetail.generic(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<5xf32>)
      loops [y = 4] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a, %a : f32, f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{continues dimension 0 in read 0 from [0, 5), which leaves 'tensor<4xf32>'}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (edge(y + 1, 0 to 5))] body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has no body}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)]
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has a definition whose flags 'fold', 'product' and 'lines' do not fit its regions}}
  %0 = "dovetail.generic"(%x) <{statement = #dovetail.definition<rank 1 loops [4] reads [0 : (d0)] fold>, loop_names = ["y"]}> ({}, {}, {}, {}, {
    %a = "dovetail.read"() <{number = 0, loops = [], operandSegmentSizes = array<i32: 0, 0>}> : () -> f32
    "dovetail.return"(%a) : (f32) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 1 loops, but names for 2}}
  %0 = "dovetail.generic"(%x) <{statement = #dovetail.definition<rank 1 loops [4] reads [0 : (d0)]>, loop_names = ["y", "x"]}> ({}, {}, {}, {}, {
    %a = "dovetail.read"() <{number = 0, loops = [], operandSegmentSizes = array<i32: 0, 0>}> : () -> f32
    "dovetail.return"(%a) : (f32) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// Reads and loops in regions.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{is of read 1, but there are 1}}
    %a = dovetail.read 1 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{gives 'f16', but an element of 'tensor<4xf32>' is 'f32'}}
    %a = dovetail.read 0 : f16
    %b = arith.extf %a : f16 to f32
    dovetail.return %b : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<6xf32>
      loops [y = 6] reads [0 : (y - 1)] body {
    // expected-error@+1 {{may leave dimension 0 of 'tensor<4xf32>'; it needs an scf.if with dovetail.inside 0, or a border}}
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// The condition is of another read.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<6xf32>
      loops [y = 6] reads [0 : (y - 1), 0 : (y - 2)] body {
    %in = dovetail.inside 1
    %a = scf.if %in -> f32 {
      // expected-error@+1 {{may leave dimension 0 of 'tensor<4xf32>'; it needs an scf.if with dovetail.inside 0, or a border}}
      %b = dovetail.read 0 : f32
      scf.yield %b : f32
    } else {
      %c = arith.constant 0.0 : f32
      scf.yield %c : f32
    }
    dovetail.return %a : f32
  }
  return
}

// -----

// There is no element where the quotient is not whole.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<7xf32>
      loops [y = 7] reads [0 : (exact((y) / 2))] body {
    // expected-error@+1 {{may leave dimension 0 of 'tensor<4xf32>'}}
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3xi64>) {
  %0 = dovetail.generic(%x, %i) : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
      loops [y = 3, p = 4 reduction(owner) by 1] reads [0 : (p), 1 : (y)] body {
    // expected-error@+1 {{depends on loop 'p', which has no coordinate here; it needs one, after `at`}}
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    %c = arith.constant 0 : index
    // expected-error@+1 {{is at loop 'x', which does not exist}}
    %a = dovetail.read 0 at [x = %c] : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (u0)] body {
    // expected-error@+1 {{has 0 unknown values, but its indices need 1}}
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{is of dimension 1, but read 0 has 1}}
    %in = dovetail.inside 0 dim 1
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{gives 2 indices, but read 0 has 1}}
    %p:2 = dovetail.position 0 : index, index
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{is of loop 'q', which does not exist}}
    %i = dovetail.index q
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// Where elements are asked for one by one, the body goes through other loops itself.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4, k = 3 reduction(sum)] reads [0 : (y)] body {
    // expected-error@+1 {{is of loop 'k', which has no coordinate here}}
    %i = dovetail.index k
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4, k = 3 reduction(sum)] reads [0 : (y)] body {
    // expected-error@+1 {{is of loop 'k', which no index names}}
    %own, %i = dovetail.look_up k
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f() -> f32 {
  // expected-error@+1 {{stands in no dovetail.generic}}
  %a = dovetail.read 0 : f32
  return %a : f32
}

// -----

// Code in regions.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{block with no terminator}}
    %a = dovetail.read 0 : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{cannot be in a region of dovetail.generic; use arith, math, scf.if, scf.for}}
    %c = dovetail.constant dense<1.0> : tensor<4xf32>
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// Generics do not contain each other.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{cannot be in a region of dovetail.generic}}
    %1 = dovetail.generic() : () -> tensor<f32>
        loops [] reads [] body {
      %b = arith.constant 0.0 : f32
      dovetail.return %b : f32
    }
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    // expected-error@+1 {{gives 'vector<2xf32>', but regions of dovetail.generic compute scalars}}
    %v = arith.constant dense<0.0> : vector<2xf32>
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %a = dovetail.read 0 : f32
    // expected-error@+1 {{in dovetail.generic must count by 1, in index}}
    %s = scf.for %i = %c0 to %c2 step %c2 iter_args(%b = %a) -> f32 {
      scf.yield %b : f32
    }
    dovetail.return %s : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      init {
    // expected-error@+1 {{stands in region init of dovetail.generic, which is at no coordinates}}
    %c:2 = dovetail.bounds y
    %i = arith.constant 0.0 : f32
    dovetail.return %i : f32
  } combine(%a: f32, %b: f32) {
    %s = arith.addf %a, %b : f32
    dovetail.return %s : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// Types.

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf16>
      loops [y = 4] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    // expected-error@+1 {{gives f32, but region body of dovetail.generic must give f16}}
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      init {
    %i = arith.constant 0.0 : f32
    dovetail.return %i : f32
  } combine(%a: f32, %b: f32) {
    %s = arith.addf %a, %b : f32
    dovetail.return %s : f32
  } body {
    %a = dovetail.read 0 : f32
    // expected-error@+1 {{gives f32, f32, but region body of dovetail.generic must give f32}}
    dovetail.return %a, %a : f32, f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has region combine of f32, but it gets f32, f32}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      init {
    %i = arith.constant 0.0 : f32
    dovetail.return %i : f32
  } combine(%a: f32) {
    dovetail.return %a : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has accumulators f32, index, not elements of its results, f32; it needs a region finish}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 tap] reads [0 : (y)]
      init {
    %i = arith.constant 0.0 : f32
    %j = arith.constant 0 : index
    dovetail.return %i, %j : f32, index
  } combine(%a: f32, %i: index, %b: f32, %j: index) {
    dovetail.return %a, %i : f32, index
  } body {
    %a = dovetail.read 0 : f32
    %i = dovetail.index y
    dovetail.return %a, %i : f32, index
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has an accumulator of type index, which cannot be stored; cast it to i64}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xi64>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      init {
    %j = arith.constant 0 : index
    dovetail.return %j : index
  } combine(%i: index, %j: index) {
    dovetail.return %j : index
  } finish(%i: index) {
    %j = arith.index_cast %i : index to i64
    dovetail.return %j : i64
  } body {
    %i = dovetail.index y
    dovetail.return %i : index
  }
  return
}

// -----

// Combiners.

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{lets ranks combine 'y' by max, but combines terms in another way; say reduction(none)}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction(max)] reads [0 : (y)]
      combine sum body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{lets ranks combine 'y' by sum after a finish; say reduction(none), or finish in another operation}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      combine sum finish(%s: f32) {
    %r = math.sqrt %s : f32
    dovetail.return %r : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has one of the regions init and combine, which come together}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      init {
    %i = arith.constant 0.0 : f32
    dovetail.return %i : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xi1>) {
  // expected-error@+1 {{combines by sum, and needs numbers, but has elements of 'i1'}}
  %0 = dovetail.generic(%x) : (tensor<4xi1>) -> tensor<1xi1>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      combine sum body {
    %a = dovetail.read 0 : i1
    dovetail.return %a : i1
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{combines 'y' by owner, which only lookups are}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction(owner)] reads [0 : (y)]
      combine sum body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// Several updates may go to one place.

func.func @f(%x: tensor<4xf32>, %u: tensor<3xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{writes where data say, and needs combine for two elements at one place}}
  %0 = dovetail.generic(%x, %u, %i) : (tensor<4xf32>, tensor<3xf32>, tensor<3xi64>) -> tensor<4xf32>
      loops [y = 4, k = 3 tap] reads [0 : (y), 1 : (k), 2 : (k)]
      writes (u0) by 2
      body {
    %a = dovetail.read 1 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %u: tensor<3xf32>, %i: tensor<3xf32>) {
  // expected-error@+1 {{has places by read 2, whose elements are 'f32'; they must be integers of 8 bits or more}}
  %0 = dovetail.generic(%x, %u, %i) : (tensor<4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4xf32>
      loops [y = 4, k = 3 tap] reads [0 : (y), 1 : (k), 2 : (k)]
      writes (u0) by 2
      combine sum body {
    %a = dovetail.read 1 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %u: tensor<3xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{writes over operand 0: read 0 must be its elements at the loops of the result}}
  %0 = dovetail.generic(%x, %u, %i) : (tensor<4xf32>, tensor<3xf32>, tensor<3xi64>) -> tensor<4xf32>
      loops [y = 4, k = 3 tap] reads [1 : (k), 0 : (y), 2 : (k)]
      writes (u0) by 2
      combine sum body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

// Scans and passes.

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{scans, but does not say how terms become one: it needs combine}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4 scan] reads [0 : (y)]
      scan y
      body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has passes and a body: it can have one of these}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      passes [sum : f32]
      combine sum pass {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has passes that find f32, f32 in place of accumulators, f32; it needs a region block}}
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<1xf32>
      loops [z = 1, y = 4 reduction] reads [0 : (y)]
      passes [max : f32, sum : f32]
      combine sum pass {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  } pass(%m: f32) {
    %a = dovetail.read 0 : f32
    %d = arith.subf %a, %m : f32
    dovetail.return %d : f32
  }
  return
}

// -----

// A position that is no integer names no iteration by itself.

func.func @f(%x: tensor<4xf32>, %i: tensor<3xf32>) {
  %0 = dovetail.generic(%x, %i) : (tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
      loops [y = 3, p = 4 reduction(sum) by 1] reads [0 : (p), 1 : (y)] body {
    // expected-error@+1 {{is of loop 'p', whose index is an element of 'f32'; it must be an integer of 8 bits or more}}
    %own, %p = dovetail.look_up p
    %a = dovetail.read 0 at [p = %p] : f32
    dovetail.return %a : f32
  }
  return
}

// -----

func.func @lookup_by_itself(%x: tensor<9x4xf32>, %i: tensor<9xi64>) -> tensor<3x4xf32> {
  // expected-error@+1 {{has a lookup by read 1, whose dimension 0 depends on 'row'; that is not known there}}
  %0 = dovetail.generic(%x, %i) : (tensor<9x4xf32>, tensor<9xi64>) -> tensor<3x4xf32>
      loops [n = 3, c = 4, row = 9 reduction(owner) by 1] reads [0 : (row, c), 1 : (row)] body {
    %own, %r = dovetail.look_up row
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return %0 : tensor<3x4xf32>
}

// -----

func.func @lookup_outside(%x: tensor<9x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  // expected-error@+1 {{has a lookup by read 1, which leaves dimension 0 of 'tensor<3xi64>'}}
  %0 = dovetail.generic(%x, %i) : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
      loops [n = 3, c = 4, row = 9 reduction(owner) by 1] reads [0 : (row, c), 1 : (n + 3)] body {
    %own, %r = dovetail.look_up row
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return %0 : tensor<3x4xf32>
}
