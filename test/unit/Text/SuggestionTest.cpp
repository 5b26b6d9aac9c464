//===- SuggestionTest.cpp - Tests of what was probably meant --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Text/Suggestion.h"

#include "gtest/gtest.h"

using namespace dovetail::text;

TEST(SuggestionTest, DistanceCountsLetters) {
  EXPECT_EQ(editDistance("kitten", "sitting", 10), 3U);
  EXPECT_EQ(editDistance("", "abc", 10), 3U);
  EXPECT_EQ(editDistance("abc", "abc", 10), 0U);
  // A swap counts once.
  EXPECT_EQ(editDistance("imgae", "image", 10), 1U);
  EXPECT_EQ(editDistance("ab", "ba", 10), 1U);
}

TEST(SuggestionTest, DistanceIgnoresCaseAndHyphens) {
  EXPECT_EQ(editDistance("Image", "iMAGE", 10), 0U);
  EXPECT_EQ(editDistance("--no_libraries", "--no-libraries", 10), 0U);
}

TEST(SuggestionTest, DistanceEndsAtItsLimit) {
  EXPECT_EQ(editDistance("kitten", "sitting", 3), 3U);
  EXPECT_EQ(editDistance("kitten", "sitting", 2), 2U);
  EXPECT_EQ(editDistance("abc", "xyzxyzxyz", 4), 4U);
}

TEST(SuggestionTest, TheNearestNameIsMeant) {
  EXPECT_EQ(suggest("imgae", {"mask", "images", "image"}), "; did you mean 'image'?");
  EXPECT_EQ(suggest("Mask", {"image", "mask"}), "; did you mean 'mask'?");
  // The first of several.
  EXPECT_EQ(suggest("xa", {"xb", "xc"}), "; did you mean 'xb'?");
}

TEST(SuggestionTest, SeveralAreNear) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(nearest("skylak", {"haswell", "skylake-avx512", "skylake"}, 3), (Names{"skylake-avx512", "skylake"}));
  EXPECT_EQ(nearest("znver", {"znver1", "znver2", "znver3", "znver4"}, 3), (Names{"znver1", "znver2", "znver3"}));
  EXPECT_EQ(nearest("haswel", {"broadwell", "haswell"}, 3), (Names{"haswell"}));
  EXPECT_EQ(nearest("pentium", {"haswell", "znver4"}, 3), Names{});
  EXPECT_EQ(nearest("", {"haswell"}, 3), Names{});
}

TEST(SuggestionTest, NothingIsSaidOfOthers) {
  EXPECT_EQ(suggest("image", {}), "");
  EXPECT_EQ(suggest("image", {"weights", "state"}), "");
  EXPECT_EQ(suggest(std::string(100000, 'x'), {std::string(100000, 'y')}), "");
}
