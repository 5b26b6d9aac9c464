//===- Suggestion.cpp - What was probably meant ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements suggest and nearest.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Text/Suggestion.h"

#include <algorithm>
#include <utility>

using namespace dovetail;

/// Nobody mistypes longer words by a letter or two.
static constexpr size_t maxLetters = 200;

static char fold(char letter) {
  if (letter >= 'A' && letter <= 'Z')
    return static_cast<char>(letter - 'A' + 'a');
  return letter == '-' ? '_' : letter;
}

size_t text::editDistance(std::string_view a, std::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= limit)
    return limit;
  // Rows of the table of distances between beginnings: the one before the last, the last, and the next.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      bool equal = fold(a[i - 1]) == fold(b[j - 1]);
      next[j] = std::min({last[j] + 1, next[j - 1] + 1, last[j - 1] + !equal});
      if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    // A swap needs a distance of two rows.
    if (std::min(*std::min_element(last.begin(), last.end()), *std::min_element(next.begin(), next.end())) >= limit)
      return limit;
    std::swap(before, last);
    std::swap(last, next);
  }
  return std::min(last[b.size()], limit);
}

std::vector<std::string> text::nearest(std::string_view word, const std::vector<std::string> &names, size_t count) {
  std::vector<std::pair<size_t, std::string>> found;
  if (word.empty() || word.size() > maxLetters)
    return {};
  size_t limit = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string &name : names) {
    // A beginning is as good as a letter that differs.
    bool begins = name.size() > word.size() && editDistance(word, name.substr(0, word.size()), 1) == 0;
    if (size_t distance = begins ? 1 : editDistance(word, name, limit); distance < limit)
      found.emplace_back(distance, name);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  found.resize(std::min(found.size(), count));
  std::vector<std::string> nearest;
  for (auto &[distance, name] : found)
    nearest.push_back(std::move(name));
  return nearest;
}

std::string text::suggest(std::string_view word, const std::vector<std::string> &names) {
  if (word.size() > maxLetters)
    return "";
  const std::string *best = nullptr;
  size_t bestDistance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string &name : names)
    if (size_t distance = editDistance(word, name, bestDistance); distance < bestDistance) {
      best = &name;
      bestDistance = distance;
    }
  return best ? "; did you mean '" + *best + "'?" : "";
}
