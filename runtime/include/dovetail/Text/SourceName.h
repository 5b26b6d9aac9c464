//===- SourceName.h - What users call the parts of a model ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the name and the place that a user gave a part of a model become text. The compiler and the runtime
// share these functions.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEXT_SOURCENAME_H
#define DOVETAIL_TEXT_SOURCENAME_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::text {

/// The largest source name, in bytes.
inline constexpr size_t maxSourceName = 120;

/// `text` in valid UTF-8, without characters that control a terminal or the direction of text. These characters, and
/// bytes that are no UTF-8, become escapes such as `\x1b` and `\u202e`. If the result has more than `maxBytes` bytes,
/// which are at least 3, it is `...` and the end of the text.
std::string clean(std::string_view text, size_t maxBytes);

/// The source name of a part of a model: `body.0.conv (net.py:8)`. Without a file `body.0.conv (line 8)`, with line 0
/// `body.0.conv`, without a name `net.py:8`. The result is clean, of at most `maxSourceName` bytes.
std::string formatSourceName(std::string_view name, std::string_view file, uint32_t line);

} // namespace dovetail::text

#endif // DOVETAIL_TEXT_SOURCENAME_H
