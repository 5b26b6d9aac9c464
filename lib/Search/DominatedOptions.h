//===- DominatedOptions.h - Options that others are no worse than -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how options of a ChoiceGraph are found that another one of their node is no worse than, whatever else is
// chosen.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SEARCH_DOMINATEDOPTIONS_H
#define DOVETAIL_LIB_SEARCH_DOMINATEDOPTIONS_H

#include "dovetail/Search/ChoiceGraph.h"

namespace dovetail {

/// For each node the options, ascending, that are left: some optimum is made of them alone. Goldstein's criterion
/// (1994): an option goes if another one of its node costs no more, even if for each neighbour that option is chosen
/// which is best for the first one compared to the other.
std::vector<std::vector<unsigned>> removeDominatedOptions(const ChoiceGraph &graph);

} // namespace dovetail

#endif // DOVETAIL_LIB_SEARCH_DOMINATEDOPTIONS_H
