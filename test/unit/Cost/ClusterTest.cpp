//===- ClusterTest.cpp - Tests of clusters and their files ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/Cluster.h"

#include "gmock/gmock.h"

using namespace dovetail;
using testing::HasSubstr;

namespace {

Cluster parse(llvm::StringRef text) {
  llvm::Expected<Cluster> cluster = Cluster::parse(text, "cluster.json");
  if (!cluster) {
    ADD_FAILURE() << llvm::toString(cluster.takeError());
    return *Cluster::getBuiltIn("cpu");
  }
  return std::move(*cluster);
}

std::string refusalOf(llvm::StringRef text) {
  llvm::Expected<Cluster> cluster = Cluster::parse(text, "cluster.json");
  return cluster ? "read without an error" : llvm::toString(cluster.takeError());
}

/// The refusal of a cluster with this device.
std::string refusalOfDevice(const std::string &fields) {
  return refusalOf(R"({"devices": {"gpu": {"base": "h100", )" + fields + "}}}");
}

/// The refusal of a cluster with these links.
std::string refusalOfLinks(const std::string &links) {
  return refusalOf(R"({"devices": {"gpu": {"base": "h100"}}, "links": )" + links + "}");
}

TEST(Cluster, DevicesBeginWithThoseThatAreBuiltIn) {
  Cluster cluster = parse(R"({"devices": {"gpu": {"base": "h100", "memory": "40GiB", "step": "5us",
                                                  "operations": "2.5T/s", "bytes": "3TB/s"}}})");
  Device expected = Cluster::getBuiltIn("h100")->getDevice(0);
  expected.name = "gpu";
  expected.memoryBytes = 42949672960;
  expected.stepSeconds = 5e-6;
  expected.operations = 2.5e12;
  expected.bytes = 3e12;
  EXPECT_EQ(cluster.getDevice(0), expected);
  EXPECT_EQ(cluster.getDevice(7), expected);
  EXPECT_TRUE(cluster.isUniform());
  EXPECT_EQ(cluster.getNumRanks(), std::nullopt);
  EXPECT_EQ(cluster.getLinks(), Cluster::getBuiltIn("h100")->getLinks());
  EXPECT_EQ(cluster.getName(), "cluster.json");
}

TEST(Cluster, RanksHaveTheirDevicesInOrder) {
  Cluster cluster = parse(R"({"name": "mixed", "devices": {"big": {"base": "h200"}, "small": {"base": "a100"}},
                              "ranks": ["small", {"device": "big", "count": 2}, "small"],
                              "links": [{"name": "NVLink", "group": 2, "exchange": "10us", "message": 1e-6,
                                         "bytes": "300GB/s"},
                                        {"exchange": "0.02ms", "message": 0, "bytes": "40GB/s"}]})");
  std::vector<std::string> names;
  for (int rank = 0; rank < 4; ++rank)
    names.push_back(cluster.getDevice(rank).name);
  EXPECT_THAT(names, testing::ElementsAre("small", "big", "big", "small"));
  EXPECT_EQ(cluster.getNumRanks(), 4);
  EXPECT_FALSE(cluster.isUniform());
  EXPECT_EQ(cluster.getName(), "mixed");
  EXPECT_EQ(cluster.getLink(2, 3), (Link{"NVLink", 2, 1e-5, 1e-6, 3e11}));
  EXPECT_EQ(cluster.getLink(1, 2), (Link{"", 0, 2e-5, 0, 4e10}));
}

TEST(Cluster, RanksMayGoOn) {
  Cluster cluster = parse(R"({"devices": {"big": {"base": "h200"}, "small": {"base": "a100"}},
                              "ranks": ["small", "big"], "repeat": true})");
  EXPECT_EQ(cluster.getNumRanks(), std::nullopt);
  EXPECT_EQ(cluster.getDevice(5).name, "big");
}

TEST(Cluster, ManyRanksOfOneDeviceAreUniform) {
  Cluster cluster = parse(R"({"devices": {"gpu": {"base": "h200"}}, "ranks": [{"device": "gpu", "count": 65536}]})");
  EXPECT_TRUE(cluster.isUniform());
  EXPECT_EQ(cluster.getNumRanks(), 65536);
}

TEST(Cluster, WhatIsWrittenIsReadAsItWas) {
  Device slow = Cluster::getBuiltIn("cpu")->getDevice(0);
  slow.name = "slow \"core\"";
  slow.bytes = 1.0 / 3 * 1e10;
  Device fast = Cluster::getBuiltIn("b200")->getDevice(0);
  Link link{"memory", 0, 1e-5 / 3, 0, 1e10}, inner{"", 2, 1e-6, 1e-7, 2e10, /*isCopied=*/true};
  for (const Cluster &cluster :
       {Cluster("one", {slow}, {link}), Cluster("some", {fast}, {link}, 3), Cluster("on", {slow, fast}, {inner, link}),
        Cluster("each", {slow, fast, fast, slow}, {inner, link}, 4)}) {
    Cluster read = parse(cluster.write());
    EXPECT_EQ(read.getName(), cluster.getName());
    EXPECT_EQ(read.getDevices(), cluster.getDevices());
    EXPECT_EQ(read.getLinks(), cluster.getLinks());
    EXPECT_EQ(read.getNumRanks(), cluster.getNumRanks());
  }
  for (const std::string &name : Cluster::getBuiltInNames()) {
    Cluster cluster = *Cluster::getBuiltIn(name);
    EXPECT_EQ(parse(cluster.write()).getDevices(), cluster.getDevices());
  }
}

StepWork product(double rows, double columns, double depth) {
  StepWork work;
  work.kind = StepWork::Kind::Product;
  work.rows = rows;
  work.columns = columns;
  work.depth = depth;
  work.operations = rows * columns * depth;
  work.readBytes = 4 * depth * (rows + columns);
  work.writtenBytes = 4 * rows * columns;
  return work;
}

TEST(Cluster, NothingTakesNoTime) {
  for (const std::string &name : Cluster::getBuiltInNames())
    EXPECT_EQ(Cluster::getBuiltIn(name)->getDevice(0).getSeconds({}), 0);
}

TEST(Cluster, SumsOfNothingAreWritten) {
  StepWork work = product(16, 16, 0);
  work.columns = 16;
  double seconds = Cluster::getBuiltIn("cpu")->getDevice(0).getSeconds(work);
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1e-5);
}

TEST(Cluster, ColumnsCountInSteps) {
  Device device = Cluster::getBuiltIn("cpu")->getDevice(0);
  device.halfColumns = 0;
  device.serialShare = 0;
  EXPECT_EQ(device.getSeconds(product(4096, 17, 4096)), device.getSeconds(product(4096, 32, 4096)));
  EXPECT_LT(device.getSeconds(product(4096, 16, 4096)), device.getSeconds(product(4096, 17, 4096)));
}

TEST(Cluster, RoundedFactorsAreFaster) {
  Device device = Cluster::getBuiltIn("h100")->getDevice(0);
  StepWork work = product(8192, 8192, 8192);
  double seconds = device.getSeconds(work);
  work.bits = 19;
  double rounded = device.getSeconds(work);
  EXPECT_LT(rounded, 0.5 * seconds);
  work.bits = 16;
  EXPECT_LT(device.getSeconds(work), rounded);
  device.productsTf32 = 0;
  work.bits = 19;
  EXPECT_EQ(device.getSeconds(work), seconds);
}

TEST(Cluster, TheEndOfTheCacheIsGradual) {
  Device device = Cluster::getBuiltIn("cpu")->getDevice(0);
  double before = 0;
  for (double bytes = 1e4; bytes < 1e8; bytes *= 1.1) {
    StepWork work;
    work.readBytes = bytes;
    work.operations = 1;
    double seconds = device.getSeconds(work);
    EXPECT_GT(seconds, before);
    EXPECT_LT(seconds, 1.5 * before + 1e-4);
    before = seconds;
  }
}

TEST(Cluster, WhatIsLeftOfRowsGoesOneByOne) {
  Device device = Cluster::getBuiltIn("cpu")->getDevice(0);
  StepWork work;
  work.operations = 1e9;
  work.columns = 64;
  double whole = device.getSeconds(work);
  work.columns = 8;
  EXPECT_NEAR(device.getSeconds(work), 16 * whole, 0.1 * whole);
  work.columns = 24;
  EXPECT_NEAR(device.getSeconds(work), 6 * whole, 0.1 * whole);
}

TEST(Cluster, WhatIsNoJsonIsRefused) {
  EXPECT_THAT(refusalOf(""), HasSubstr("'cluster.json': the file is not JSON: "));
  EXPECT_THAT(refusalOf("{\"devices\": {\n]"), HasSubstr("line 2"));
  EXPECT_THAT(refusalOf("\xff"), HasSubstr("the file is not JSON"));
  EXPECT_THAT(refusalOf(std::string(100000, '[')), HasSubstr("the file is not JSON"));
  EXPECT_THAT(refusalOf(R"({"devices": {"gpu": {"base": "h100", "step": 1e999}}})"), HasSubstr("the file is not JSON"));
}

TEST(Cluster, WrongKeysAreNamed) {
  EXPECT_EQ(refusalOf("[]"),
            "'cluster.json': expected an object with the keys name, devices, ranks, repeat, links, not []");
  EXPECT_EQ(refusalOf(R"({"device": {}})"),
            "'cluster.json': unknown key \"device\"; the keys are name, devices, ranks, repeat, links");
  EXPECT_THAT(refusalOf(R"({"devices": {}})"), HasSubstr("devices: expected an object with names and devices"));
  EXPECT_THAT(refusalOfDevice(R"("speed": 1)"), HasSubstr("devices.gpu: unknown key \"speed\"; the keys are base, "));
  EXPECT_THAT(refusalOf(R"({"devices": {"gpu": {"base": "tpu"}}})"),
              HasSubstr("devices.gpu.base: unknown built-in device \"tpu\"; the devices are cpu, a100"));
  EXPECT_THAT(refusalOf(R"({"devices": {"gpu": {"base": 3}}})"), HasSubstr("devices.gpu.base: expected a name"));
  EXPECT_EQ(refusalOf(R"({"devices": {"gpu": {"memory": 1}}})"),
            "'cluster.json': devices.gpu: 'step' is missing; write for example 1e-5 or \"10us\"");
}

TEST(Cluster, WrongNumbersAreNamed) {
  EXPECT_EQ(refusalOfDevice(R"("memory": "80Gb")"), "'cluster.json': devices.gpu.memory: \"80Gb\" is not a number of "
                                                    "bytes; write for example 85899345920 or \"80GiB\"");
  for (const char *wrong : {"\"\"", "\"GiB\"", "\"iB\"", "\"1i\"", "\"-1GiB\"", "\"1..GiB\"", "-1", "null", "[1]",
                            "true", "\"1 GiB/s\"", "\"1GKB\""})
    EXPECT_THAT(refusalOfDevice("\"memory\": " + std::string(wrong)), HasSubstr("devices.gpu.memory: ")) << wrong;
  EXPECT_THAT(refusalOfDevice(R"("memory": 1e30)"), HasSubstr("devices.gpu.memory: 1e+30 is too large"));
  // Sums and quotients of what is read are finite.
  EXPECT_THAT(refusalOfDevice(R"("step": 1e300)"), HasSubstr("devices.gpu.step: 1e+300 is too large"));
  EXPECT_THAT(refusalOfDevice(R"("bytes": 1e-300)"), HasSubstr("devices.gpu.bytes: 1e-300 is too small"));
  EXPECT_THAT(refusalOfDevice(R"("operations": 1e300)"), HasSubstr("devices.gpu.operations: 1e+300 is too large"));
  EXPECT_THAT(refusalOfDevice(R"("half_rows": 1e300)"), HasSubstr("devices.gpu.half_rows: 1e+300 is too large"));
  EXPECT_THAT(refusalOfDevice(R"("serial_share": 1.5)"), HasSubstr("devices.gpu.serial_share: 1.5 is too large"));
  EXPECT_THAT(refusalOfDevice(R"("near_cache": "1MiB")"), HasSubstr("devices.gpu.near_bytes: the speed of the cache"));
  EXPECT_THAT(refusalOfDevice(R"("bytes": 0)"), HasSubstr("devices.gpu.bytes: 0 is not a positive number"));
  EXPECT_THAT(refusalOfDevice(R"("bytes": "3TB")"), HasSubstr("3e11 or \"300GB/s\""));
  EXPECT_THAT(refusalOfDevice(R"("step": "5m")"), HasSubstr("devices.gpu.step: \"5m\" is not a number of seconds"));
  EXPECT_THAT(refusalOfDevice(R"("half_rows": "5s")"), HasSubstr("devices.gpu.half_rows: "));
}

TEST(Cluster, WrongRanksAreNamed) {
  auto refusalOfRanks = [](const std::string &ranks) {
    return refusalOf(R"({"devices": {"a": {"base": "a100"}, "h": {"base": "h100"}}, "ranks": )" + ranks + "}");
  };
  EXPECT_THAT(refusalOf(R"({"devices": {"a": {"base": "a100"}, "h": {"base": "h100"}}})"),
              HasSubstr("'ranks' is missing; write which rank has which, such as \"ranks\": [\"a\", \"h\"]"));
  EXPECT_THAT(refusalOfRanks("3"), HasSubstr("ranks: expected the devices of ranks"));
  EXPECT_THAT(refusalOfRanks("[]"), HasSubstr("ranks: expected the devices of ranks"));
  EXPECT_THAT(refusalOfRanks(R"(["a", "b"])"), HasSubstr("ranks[1]: 'devices' has no \"b\"; it has a, h"));
  EXPECT_THAT(refusalOfRanks(R"([{"count": 2}])"), HasSubstr("ranks[0].device: expected a name"));
  EXPECT_THAT(refusalOfRanks(R"([{"device": "a", "number": 2}])"), HasSubstr("ranks[0]: unknown key \"number\""));
  for (const char *wrong : {"0", "-1", "1.5", "\"2\"", "65537", "18446744073709551615"})
    EXPECT_THAT(refusalOfRanks(R"([{"device": "a", "count": )" + std::string(wrong) + "}]"),
                HasSubstr("ranks[0].count: "))
        << wrong;
  EXPECT_THAT(refusalOfRanks(R"(["h", {"device": "a", "count": 65536}])"), HasSubstr("more than 65536 ranks"));
  EXPECT_THAT(refusalOf(R"({"devices": {"a": {"base": "a100"}}, "repeat": 1})"), HasSubstr("repeat: 1 is neither"));
}

TEST(Cluster, WrongLinksAreNamed) {
  std::string fields = R"("exchange": 0, "message": 0, "bytes": 1)";
  auto group = [&](const std::string &size) { return "{\"group\": " + size + ", " + fields + "}"; };
  std::string all = "{" + fields + "}";
  EXPECT_THAT(refusalOfLinks("[]"), HasSubstr("links: expected a list of links"));
  EXPECT_THAT(refusalOfLinks("[1]"), HasSubstr("links[0]: expected an object"));
  EXPECT_THAT(refusalOfLinks("[{}]"), HasSubstr("links[0]: 'exchange' is missing"));
  EXPECT_THAT(refusalOfLinks("[{\"copied\": 1}]"), HasSubstr("links[0].copied: 1 is neither true nor false"));
  EXPECT_THAT(refusalOfLinks("[" + group("8") + "]"), HasSubstr("links[0].group: the last link connects all ranks"));
  EXPECT_THAT(refusalOfLinks("[" + all + ", " + all + "]"), HasSubstr("links[0].group: the size of the groups"));
  EXPECT_THAT(refusalOfLinks("[" + group("8") + ", " + group("8") + ", " + all + "]"),
              HasSubstr("links[1].group: 8 is not larger than the groups of the link before, 8"));
  EXPECT_THAT(refusalOfLinks("[" + group("4") + ", " + group("6") + ", " + all + "]"),
              HasSubstr("links[1].group: 6 is not a multiple"));
  EXPECT_THAT(
      refusalOf(R"({"devices": {"d": {"step": 0, "products_32": 1, "products_16": 1, "products_tf32": 0, "half_rows": 0,
      "half_columns": 0, "half_depth": 0, "column_step": 1, "depthwise": 1, "half_taps": 0, "operations": 1, "row_step": 1, "bytes": 1, "cached_bytes": 1, "cache": 0, "near_bytes": 0,
      "near_cache": 0, "copied_bytes": 1, "serial_share": 0}}})"),
      HasSubstr("'links' is missing"));
}

} // namespace
