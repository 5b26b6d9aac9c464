//===- Unfinished.h - Files that a run may leave behind -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the list of files that are removed when the process is asked to end, and how those are found that one left
// which had no time for it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_UNFINISHED_H
#define DOVETAIL_TOOLS_UNFINISHED_H

#include <string>

namespace dovetail::tools {

/// A signal that asks the process to end removes this file before it does, if nobody else has a handler for it. Any
/// number of them, on one thread at a time.
void rememberUnfinished(const std::string &path);
/// It is there no more, or is to stay.
void forgetUnfinished(const std::string &path);

/// Whether that is what names of files end in that are not complete: a point, and 16 digits of base 16.
bool isSuffix(const std::string &text);
/// Removes the files of that suffix whose names are otherwise `path` with anything in the places of Destination.h.
void removeUnfinished(const std::string &path, const std::string &suffix);

/// `text` as a pattern of a shell's that it alone matches, but for the places of Destination.h, which anything does.
std::string makePattern(const std::string &text);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_UNFINISHED_H
