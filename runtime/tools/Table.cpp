//===- Table.cpp - Text in columns ------------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a file of its own, so that a program which prints no more than a table is small.
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/Support.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;

std::string tools::formatTable(const std::vector<std::vector<std::string>> &rows, const std::string &indent) {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    text += indent;
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size())
        text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}
