//===- MeshTest.cpp - Tests of meshes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Mesh.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dovetail::layout;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MeshTest, RanksAreRowMajor) {
  Mesh mesh({{"y", 4}, {"x", 2}});
  EXPECT_EQ(mesh.numRanks(), 8);
  EXPECT_THAT(mesh.coordsOf(0), ElementsAre(0, 0));
  EXPECT_THAT(mesh.coordsOf(1), ElementsAre(0, 1));
  EXPECT_THAT(mesh.coordsOf(2), ElementsAre(1, 0));
  EXPECT_THAT(mesh.coordsOf(7), ElementsAre(3, 1));
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    EXPECT_EQ(mesh.rankOf(mesh.coordsOf(rank)), rank);
}

TEST(MeshTest, MeshWithoutAxesHasOneRank) {
  Mesh mesh;
  EXPECT_EQ(mesh.numRanks(), 1);
  EXPECT_THAT(mesh.coordsOf(0), ElementsAre());
  EXPECT_EQ(mesh.rankOf({}), 0);
  EXPECT_TRUE(mesh.verify());
}

TEST(MeshTest, AxesAreFoundByName) {
  Mesh mesh({{"y", 4}, {"x", 2}});
  EXPECT_EQ(mesh.axisIndex("x"), 1);
  EXPECT_EQ(mesh.axisIndex("z"), std::nullopt);
}

TEST(MeshTest, Prints) { EXPECT_EQ(Mesh({{"y", 4}, {"x", 2}}).str(), R"(["y"=4, "x"=2])"); }

TEST(MeshTest, VerifyNamesTheAxisAtFault) {
  std::string why;
  EXPECT_TRUE(Mesh({{"y", 4}, {"x", 2}}).verify(&why));
  EXPECT_FALSE(Mesh({{"y", 4}, {"y", 2}}).verify(&why));
  EXPECT_EQ(why, "mesh axis \"y\" appears twice");
  EXPECT_FALSE(Mesh({{"y", 4}, {"", 2}}).verify(&why));
  EXPECT_EQ(why, "mesh axis 1 has no name");
  EXPECT_FALSE(Mesh({{"y", 0}}).verify(&why));
  EXPECT_THAT(why, HasSubstr("\"y\" has size 0"));
  EXPECT_FALSE(Mesh({{"a", 1 << 20}, {"b", 1 << 20}, {"c", 1 << 30}}).verify(&why));
  EXPECT_THAT(why, HasSubstr("more ranks"));
}
