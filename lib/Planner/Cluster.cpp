//===- Cluster.cpp - Devices, links, and how long they take ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Cluster, with those that are built in.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Planner/Cluster.h"

#include <algorithm>
#include <cmath>

using namespace dovetail;

/// What half a speed is at `half` has of it at `value`.
static double getShare(double value, double half) { return value / (value + half); }

double Device::getProductSeconds(const StepWork &work) const {
  // What is computed at once are elements next to each other in memory, which are channels.
  bool isDepthwise = work.columns == 1 && work.batch > 1;
  double together = isDepthwise ? work.batch : work.columns;
  double step = columnStep * 32 / std::clamp(work.bits, 16u, 32u);
  double padding = std::ceil(together / step) * step / together;
  double share = isDepthwise ? getShare(work.depth, halfTaps)
                             : getShare(work.rows, halfRows) * getShare(work.columns, halfColumns) *
                                   getShare(work.depth, halfDepth);
  double speed = isDepthwise ? depthwise : work.bits <= 16 ? products16 : products32;
  return padding * (work.operations / (speed * share) + work.resultOperations / operations);
}

/// How many times as long rows of so many elements take as if they were made of vectors of `step`.
static double getRowFactor(double columns, double step) {
  if (columns <= 1 || step <= 1)
    return 1;
  return (std::floor(columns / step) + std::fmod(columns, step)) * step / columns;
}

double Device::getSeconds(const StepWork &work) const {
  double moved = work.readBytes + work.writtenBytes;
  if (work.operations == 0 && moved == 0)
    return 0;
  // Of what is somewhat larger than a cache, part is still there.
  double cached = cacheBytes > 0 ? std::clamp(2 - moved / cacheBytes, 0.0, 1.0) : 0;
  double moving = moved * ((cached > 0 ? cached / cachedBytes : 0) + (1 - cached) / bytes);
  double computing = 0;
  switch (work.kind) {
  case StepWork::Kind::Product:
    computing = work.operations > 0 ? getProductSeconds(work) : 0;
    break;
  case StepWork::Kind::Elements:
    computing = work.operations / (operations * 32 / std::max(work.bits, 32u)) *
                getRowFactor(work.columns, rowStep * 32 / std::max(work.bits, 32u));
    break;
  case StepWork::Kind::Copy:
    computing = moved / copiedBytes;
    break;
  }
  return stepSeconds + std::max(computing, moving) + serialShare * std::min(computing, moving);
}

double Cluster::getAverageSpeed(int64_t numRanks) const {
  if (isUniform())
    return devices.front().products32;
  double sum = 0;
  for (int64_t rank = 0; rank < numRanks; ++rank)
    sum += getDevice(rank).products32;
  return sum / static_cast<double>(numRanks);
}

const Link &Cluster::getLink(int64_t a, int64_t b) const {
  for (const Link &link : links)
    if (link.groupSize == 0 || a / link.groupSize == b / link.groupSize)
      return link;
  return links.back();
}

double Cluster::getSeconds(const Link &link, const ExchangeWork &work) {
  if (work.phases == 0)
    return 0;
  double further = std::max(work.messages - work.phases, 0.0);
  return link.exchangeSeconds * work.phases + link.messageSeconds * further + work.receivedBytes / link.bytes;
}

/// Ranks that are threads of one process, each with one core of a server.
static Cluster getCpus() {
  Device core;
  core.name = "cpu";
  core.stepSeconds = 1e-6;
  core.products32 = 5e10;
  core.products16 = 5e10;
  core.halfRows = 4;
  core.halfColumns = 4;
  core.halfDepth = 8;
  core.columnStep = 16;
  core.depthwise = 4e10;
  core.operations = 3e10;
  core.rowStep = 16;
  core.bytes = 1.2e10;
  core.cachedBytes = 4e10;
  core.cacheBytes = 1.6e7;
  core.copiedBytes = 1.2e10;
  core.serialShare = 0.5;
  return Cluster("cpu", {core}, {{"memory", 0, 3e-5, 1e-6, 1e10}});
}

/// GPUs in nodes of eight, NVLink inside of them and InfiniBand between. Speeds are those of data sheets, of which a
/// program has a part.
static Cluster getGpus(const char *name, int64_t gibibytes, double tensorFlops32, double tensorFlops16,
                       double vectorFlops, double memory, double cacheBytes, double nvlink) {
  Device gpu;
  gpu.name = name;
  gpu.memoryBytes = gibibytes << 30;
  gpu.stepSeconds = 3e-6;
  gpu.products32 = 0.35 * tensorFlops32;
  gpu.products16 = 0.35 * tensorFlops16;
  gpu.halfRows = 512;
  gpu.halfColumns = 64;
  gpu.halfDepth = 64;
  // Vectors of 16 bytes.
  gpu.columnStep = 4;
  gpu.depthwise = 0.125 * vectorFlops;
  gpu.operations = 0.25 * vectorFlops;
  gpu.bytes = 0.8 * memory;
  gpu.cachedBytes = 2 * memory;
  gpu.cacheBytes = cacheBytes;
  gpu.copiedBytes = gpu.bytes;
  return Cluster(name, {gpu}, {{"NVLink", 8, 1e-5, 1e-6, 0.75 * nvlink}, {"InfiniBand", 0, 2e-5, 3e-6, 4e10}});
}

std::optional<Cluster> Cluster::getBuiltIn(llvm::StringRef name) {
  if (name == "cpu")
    return getCpus();
  // Dense TF32 and FP16 products, FP32, memory, second-level cache, NVLink in one direction.
  if (name == "a100")
    return getGpus("a100", 80, 156e12, 312e12, 19.5e12, 2.0e12, 40e6, 300e9);
  if (name == "h100")
    return getGpus("h100", 80, 495e12, 989e12, 67e12, 3.35e12, 50e6, 450e9);
  if (name == "h200")
    return getGpus("h200", 141, 495e12, 989e12, 67e12, 4.8e12, 50e6, 450e9);
  if (name == "b200")
    return getGpus("b200", 180, 1125e12, 2250e12, 75e12, 8.0e12, 126e6, 900e9);
  return std::nullopt;
}

std::vector<std::string> Cluster::getBuiltInNames() { return {"cpu", "a100", "h100", "h200", "b200"}; }
