//===- ClusterFitTest.cpp - Tests of fitting devices and links ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/ClusterFit.h"

#include "gmock/gmock.h"

using namespace dovetail;

namespace {

StepWork product(double batch, double rows, double columns, double depth) {
  StepWork work;
  work.kind = StepWork::Kind::Product;
  work.batch = batch;
  work.rows = rows;
  work.columns = columns;
  work.depth = depth;
  work.operations = batch * rows * columns * depth;
  work.readBytes = 4 * batch * (rows + columns) * depth;
  work.writtenBytes = 4 * batch * rows * columns;
  return work;
}

StepWork elements(double count, double operations, StepWork::Kind kind = StepWork::Kind::Elements) {
  StepWork work;
  work.kind = kind;
  work.operations = count * operations;
  work.readBytes = work.writtenBytes = 4 * count;
  return work;
}

std::vector<StepWork> steps() {
  std::vector<StepWork> works;
  for (double rows : {1, 16, 200, 4000})
    for (double columns : {8, 32, 100, 512})
      for (double depth : {16, 128, 1024})
        works.push_back(product(1, rows, columns, depth));
  for (double channels : {16, 96, 384})
    for (double taps : {9, 25, 49})
      works.push_back(product(channels, 3136, 1, taps));
  for (double count : {16.0, 1e3, 1e4, 1e5, 1e6, 1e7})
    for (double operations : {1, 20, 100}) {
      works.push_back(elements(count, operations));
      works.push_back(elements(count, 0, StepWork::Kind::Copy));
    }
  return works;
}

/// Another device than that with which a fit begins.
Device someDevice() {
  Device device = Cluster::getBuiltIn("cpu")->getDevice(0);
  device.stepSeconds = 3e-6;
  device.products32 = 1.1e11;
  device.halfRows = 7;
  device.halfColumns = 11;
  device.halfDepth = 20;
  device.depthwise = 1.5e10;
  device.operations = 7e9;
  device.bytes = 5e9;
  device.cachedBytes = 9e10;
  device.cacheBytes = 5e5;
  device.copiedBytes = 4e9;
  device.serialShare = 0.2;
  return device;
}

TEST(ClusterFit, ADeviceIsFoundAgain) {
  Device device = someDevice();
  std::vector<StepSample> samples;
  for (const StepWork &work : steps())
    samples.push_back({work, device.getSeconds(work)});
  Device fitted = fitDevice(Cluster::getBuiltIn("cpu")->getDevice(0), samples);
  for (const StepSample &sample : samples)
    EXPECT_LT(getErrorFactor(fitted.getSeconds(sample.work), sample.seconds), 0.1);
  EXPECT_NEAR(fitted.products32, device.products32, 0.05 * device.products32);
  EXPECT_NEAR(fitted.operations, device.operations, 0.05 * device.operations);
  EXPECT_NEAR(fitted.bytes, device.bytes, 0.05 * device.bytes);
}

TEST(ClusterFit, VectorsAreFoundAgain) {
  for (double columnStep : {4, 8, 16})
    for (double rowStep : {4, 8}) {
      Device device = someDevice();
      device.columnStep = columnStep;
      device.rowStep = rowStep;
      std::vector<StepSample> samples;
      for (const StepWork &work : steps())
        samples.push_back({work, device.getSeconds(work)});
      for (double columns : {3, 10, 21, 60}) {
        StepWork work = elements(columns * 1e4, 20);
        work.columns = columns;
        samples.push_back({work, device.getSeconds(work)});
        StepWork few = product(1, 1000, columns, 256);
        samples.push_back({few, device.getSeconds(few)});
      }
      Device fitted = fitDevice(Cluster::getBuiltIn("cpu")->getDevice(0), samples);
      EXPECT_EQ(fitted.columnStep, columnStep);
      EXPECT_EQ(fitted.rowStep, rowStep);
    }
}

TEST(ClusterFit, DisturbedSamplesDoNotDecide) {
  Device device = someDevice();
  std::vector<StepSample> samples;
  for (const StepWork &work : steps())
    samples.push_back({work, device.getSeconds(work) * (samples.size() % 10 == 3 ? 8 : 1)});
  Device fitted = fitDevice(Cluster::getBuiltIn("cpu")->getDevice(0), samples);
  EXPECT_NEAR(fitted.products32, device.products32, 0.15 * device.products32);
}

TEST(ClusterFit, ALinkIsFoundAgain) {
  Link link{"memory", 0, 2e-5, 4e-6, 3e9};
  std::vector<ExchangeSample> samples;
  for (double bytes : {1e3, 1e5, 1e6, 1e7})
    for (double messages : {1, 3, 7}) {
      ExchangeWork work{bytes, messages, 1};
      samples.push_back({work, Cluster::getSeconds(link, work)});
    }
  Link fitted = fitLink(Cluster::getBuiltIn("cpu")->getLinks().front(), samples);
  EXPECT_NEAR(fitted.exchangeSeconds, link.exchangeSeconds, 0.05 * link.exchangeSeconds);
  EXPECT_NEAR(fitted.messageSeconds, link.messageSeconds, 0.1 * link.messageSeconds);
  EXPECT_NEAR(fitted.bytes, link.bytes, 0.05 * link.bytes);
}

TEST(ClusterFit, WithoutSamplesNothingChanges) {
  Device device = someDevice();
  EXPECT_DOUBLE_EQ(fitDevice(device, {}).products32, device.products32);
}

TEST(ClusterFit, ErrorsAreTheSameAboveAndBelow) {
  EXPECT_DOUBLE_EQ(getErrorFactor(2, 1), 1);
  EXPECT_DOUBLE_EQ(getErrorFactor(1, 2), 1);
  EXPECT_DOUBLE_EQ(getErrorFactor(3, 3), 0);
}

} // namespace
