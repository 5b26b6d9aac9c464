//===- LesserMesh.h - Ranks that do not pay ---------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what finds ranks that make a program slower: they are left without work, or a smaller mesh is named.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_LESSERMESH_H
#define DOVETAIL_LIB_DRIVER_LESSERMESH_H

#include "dovetail/Driver/Compilation.h"

namespace dovetail {

/// Where devices differ, sets `mostShares` and `slowness` of `options` so that the program is predicted to be faster.
/// Kinds of ranks that are busy for longer than others get less, slow ones perhaps nothing. Programs are made and
/// simulated for that, as errors of estimates grow with how slow a device is. `unsplit` is at the end of the phase
/// simplify and stays there.
void divideAmongUnequal(Compilation &unsplit, CompileOptions &options);

/// A mesh with fewer ranks.
struct LesserMesh {
  layout::Mesh mesh;
  /// Numbers in the larger mesh. With others than the first ones the cluster has to be another one, too.
  std::vector<int> ranks;
  /// As `dovetail plan` predicts it, and the larger mesh.
  double seconds = 0, ownSeconds = 0;

  /// Both times, and what to pass: `207.12 ms with '--mesh y=2', and 319.40 ms with '--mesh y=3'`.
  std::string describe(const layout::Mesh &own) const;
};

/// The one of fewer ranks that the search expects to be fastest. Nothing if it is not also predicted to be faster, by
/// enough to be worth saying. `unsplit` is at the end of the phase legalize and stays there; its options are the
/// user's. `lowered` is at the end of the phase lower. `expectedSeconds`: the search's estimate for that.
///
/// Most are left out before anything is tried: where all work on fewer ranks takes longer, as even as it may be
/// divided. `maySplit` and `mayMake`: whether there is time to split another program, and to make one of what is split.
/// Nothing if there is not.
std::optional<LesserMesh> findLesserMesh(Compilation &unsplit, Compilation &lowered, double expectedSeconds,
                                         llvm::function_ref<bool()> maySplit, llvm::function_ref<bool()> mayMake);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_LESSERMESH_H
