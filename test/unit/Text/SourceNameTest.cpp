//===- SourceNameTest.cpp - Tests of source names -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Text/SourceName.h"

#include "gtest/gtest.h"

using namespace dovetail::text;

TEST(SourceNameTest, HasNameAndPlace) {
  EXPECT_EQ(formatSourceName("body.0.conv", "net.py", 8), "body.0.conv (net.py:8)");
  EXPECT_EQ(formatSourceName("body.0.conv", "", 8), "body.0.conv (line 8)");
  EXPECT_EQ(formatSourceName("body.0.conv", "net.py", 0), "body.0.conv");
  EXPECT_EQ(formatSourceName("", "net.py", 8), "net.py:8");
  EXPECT_EQ(formatSourceName("", "", 0), "");
}

TEST(SourceNameTest, IsShort) {
  std::string name(1000, 'a'), file(1000, 'b');
  name += ".conv";
  file += ".py";
  std::string text = formatSourceName(name, file, 4294967295U);
  EXPECT_LE(text.size(), maxSourceName);
  EXPECT_EQ(text.substr(0, 4), "...a");
  EXPECT_NE(text.find(".conv (...b"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(".py:4294967295)")) << text;
}

TEST(SourceNameTest, CleanTextStays) {
  EXPECT_EQ(clean("body.0 (net.py)", 120), "body.0 (net.py)");
  EXPECT_EQ(clean("<b>&\"'", 120), "<b>&\"'");
  EXPECT_EQ(clean("Gr\u00f6\u00dfe \u5c64 \U0001f600", 120), "Gr\u00f6\u00dfe \u5c64 \U0001f600");
  EXPECT_EQ(clean("", 120), "");
}

TEST(SourceNameTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(clean("a\x1b[31mb\nc\td\r", 120), "a\\x1b[31mb\\x0ac\\x09d\\x0d");
  EXPECT_EQ(clean(std::string_view("a\0b", 3), 120), "a\\x00b");
  EXPECT_EQ(clean("\x7f", 120), "\\x7f");
  // Unicode has more: one that begins control sequences, one that ends lines, and some that reverse text.
  EXPECT_EQ(clean("\u009b", 120), "\\x9b");
  EXPECT_EQ(clean("a\u2028b\u202ec\u2066", 120), "a\\u2028b\\u202ec\\u2066");
  EXPECT_EQ(clean("\U000e0041", 120), "\\U000e0041");
}

TEST(SourceNameTest, WrongBytesAreEscaped) {
  // A byte that begins nothing, a character that is cut off, too long a form, half a surrogate, beyond the last one.
  EXPECT_EQ(clean("a\xff", 120), "a\\xff");
  EXPECT_EQ(clean("\xe5\xb1", 120), "\\xe5\\xb1");
  EXPECT_EQ(clean("\xc0\x80", 120), "\\xc0\\x80");
  EXPECT_EQ(clean("\xe0\x80\x80", 120), "\\xe0\\x80\\x80");
  EXPECT_EQ(clean("\xed\xa0\x80", 120), "\\xed\\xa0\\x80");
  EXPECT_EQ(clean("\xf4\x90\x80\x80", 120), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(clean("\xc3(", 120), "\\xc3(");
}

TEST(SourceNameTest, TheEndOfLongTextStays) {
  EXPECT_EQ(clean("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(clean("abcdefghi", 8), "...efghi");
  // Neither characters nor escapes are cut.
  EXPECT_EQ(clean("aaaa\u5c64bcd", 8), "...bcd");
  EXPECT_EQ(clean("aaaaa\x1bxyz", 9), "...xyz");
  EXPECT_EQ(clean("abcdef", 3), "...");
}
