//===- Shell.cpp - Words of command lines ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Text/Shell.h"

#include <algorithm>

using namespace dovetail;

static bool isPlain(char c) {
  bool isLetter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), isDigit = c >= '0' && c <= '9';
  return isLetter || isDigit || std::string_view("._-+/:,=@").find(c) != std::string_view::npos;
}

std::string text::quoteForShell(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), isPlain))
    return std::string(text);
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}
