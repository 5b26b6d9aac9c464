//===- SourceName.cpp - What users call the parts of a model --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how source names become text.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Text/SourceName.h"

#include <vector>

using namespace dovetail;

/// Of a source name, what the file may take.
static constexpr size_t maxFile = 48;

namespace {
/// A character at the beginning of a text; one byte that is no character if `point` is negative.
struct Character {
  size_t size = 1;
  int64_t point = -1;
};
} // namespace

static Character decode(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80)
    return {1, lead};
  size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size)
    return {};
  int64_t point = lead & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80)
      return {};
    point = point << 6 | (byte & 0x3f);
  }
  bool isShortest = point >= (size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80);
  bool isSurrogate = point >= 0xd800 && point < 0xe000;
  return isShortest && !isSurrogate && point <= 0x10ffff ? Character{size, point} : Character{};
}

/// Whether a character acts on a terminal, ends a line or changes the direction of text.
static bool isControl(int64_t point) {
  auto isBetween = [&](int64_t first, int64_t last) { return point >= first && point <= last; };
  return point < 0x20 || isBetween(0x7f, 0x9f) || point == 0x61c || isBetween(0x200b, 0x200f) ||
         isBetween(0x2028, 0x202e) || isBetween(0x2060, 0x206f) || point == 0xfeff || isBetween(0xe0000, 0xe007f);
}

static void appendHex(std::string &text, uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    text += "0123456789abcdef"[value >> shift & 15];
}

std::string text::clean(std::string_view text, size_t maxBytes) {
  std::string result;
  // Where characters and escapes begin: a text is cut nowhere else.
  std::vector<size_t> starts;
  while (!text.empty()) {
    starts.push_back(result.size());
    Character character = decode(text);
    int64_t point = character.point < 0 ? static_cast<unsigned char>(text[0]) : character.point;
    if (character.point >= 0 && !isControl(point)) {
      result += text.substr(0, character.size);
    } else if (point < 0x100) {
      result += "\\x";
      appendHex(result, point, 2);
    } else {
      result += point < 0x10000 ? "\\u" : "\\U";
      appendHex(result, point, point < 0x10000 ? 4 : 8);
    }
    text.remove_prefix(character.size);
  }
  if (result.size() <= maxBytes)
    return result;
  for (size_t start : starts)
    if (result.size() - start + 3 <= maxBytes)
      return "..." + result.substr(start);
  return "...";
}

std::string text::formatSourceName(std::string_view name, std::string_view file, uint32_t line) {
  std::string place;
  if (line > 0)
    place = file.empty() ? "line " + std::to_string(line) : clean(file, maxFile) + ":" + std::to_string(line);
  if (name.empty() || place.empty())
    return name.empty() ? place : clean(name, maxSourceName);
  return clean(name, maxSourceName - place.size() - 3) + " (" + place + ")";
}
