//===- Shell.h - Words of command lines -------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares quoteForShell, for messages that say what to type.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEXT_SHELL_H
#define DOVETAIL_TEXT_SHELL_H

#include <string>
#include <string_view>

namespace dovetail::text {

/// `text` as a shell takes it for one word.
std::string quoteForShell(std::string_view text);

} // namespace dovetail::text

#endif // DOVETAIL_TEXT_SHELL_H
