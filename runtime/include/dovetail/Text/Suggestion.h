//===- Suggestion.h - What was probably meant -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares suggest and nearest, which find the names that a user probably meant. The compiler and the runtime share it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEXT_SUGGESTION_H
#define DOVETAIL_TEXT_SUGGESTION_H

#include <string>
#include <string_view>
#include <vector>

namespace dovetail::text {

/// How many letters must be inserted, removed, replaced or swapped with the next one to turn `a` into `b`, or `limit`
/// if that is less. Upper and lower case, and '-' and '_', count as equal.
size_t editDistance(std::string_view a, std::string_view b, size_t limit);

/// `; did you mean 'image'?` with the one of `names` that is nearest to `word`, the first of several. Empty if more
/// than a third of the letters differ.
std::string suggest(std::string_view word, const std::vector<std::string> &names);

/// At most `count` of `names` that are as near to `word` as `suggest` demands, or begin with it, nearest first.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string> &names, size_t count);

} // namespace dovetail::text

#endif // DOVETAIL_TEXT_SUGGESTION_H
