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

#include "dovetail/Cost/Cluster.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace dovetail;

/// What half a speed is at `half` has of it at `value`.
static double getShare(double value, double half) { return value / (value + half); }

StepWork StepWork::by(const calls::AlgorithmEntry &algorithm, llvm::ArrayRef<int64_t> loops) const {
  calls::AlgorithmWork taken = algorithm.getWork(loops);
  StepWork work = *this;
  work.batch = taken.batch;
  work.rows = taken.rows;
  work.depth = taken.depth;
  work.operations = taken.products;
  work.resultOperations += taken.operations;
  work.readBytes += taken.readBytes;
  return work;
}

double Device::getProductSeconds(const StepWork &work) const {
  // What is computed at once are elements next to each other in memory, which are channels.
  bool isDepthwise = work.columns == 1 && work.batch > 1;
  double together = isDepthwise ? work.batch : work.columns;
  double step = columnStep * (work.bits <= 16 ? 2 : 1);
  double padding = std::ceil(together / step) * step / together;
  double share = isDepthwise ? getShare(work.depth, halfTaps)
                             : getShare(work.rows, halfRows) * getShare(work.columns * padding, halfColumns) *
                                   getShare(work.depth, halfDepth);
  double speed = isDepthwise                          ? depthwise
                 : work.bits <= 16                    ? products16
                 : work.bits < 32 && productsTf32 > 0 ? productsTf32
                                                      : products32;
  // A rank may have results to write, but no terms.
  double multiplying = work.operations > 0 ? work.operations / (speed * share) : 0;
  return padding * (multiplying + work.resultOperations / operations);
}

/// How many times as long rows of so many elements take as if they were made of vectors of `step`.
static double getRowFactor(double columns, double step) {
  if (columns <= 1 || step <= 1)
    return 1;
  return (std::floor(columns / step) + std::fmod(columns, step)) * step / columns;
}

/// Of what is somewhat larger than a cache, part is still there.
static double getCachedPart(double moved, double cacheBytes) {
  return cacheBytes > 0 ? std::clamp(2 - moved / cacheBytes, 0.0, 1.0) : 0;
}

double Device::getMovingSeconds(double moved) const {
  double near = getCachedPart(moved, nearCacheBytes), cached = getCachedPart(moved, cacheBytes);
  double perByte = (1 - cached) / bytes + (cached > 0 ? cached / cachedBytes : 0);
  return moved * ((1 - near) * perByte + (near > 0 ? near / nearBytes : 0));
}

double Device::getSeconds(const StepWork &work) const {
  double moved = work.readBytes + work.writtenBytes;
  if (work.operations == 0 && moved == 0)
    return 0;
  double moving = getMovingSeconds(moved);
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

Cluster Cluster::roundingFactors(unsigned bits) const {
  Cluster other = *this;
  for (Device &device : other.devices)
    if (bits <= 16)
      device.products32 = device.products16;
    else if (bits <= 19 && device.productsTf32 > 0)
      device.products32 = device.productsTf32;
  return other;
}

Cluster Cluster::withAlgorithms() const {
  Cluster other = *this;
  for (Device &device : other.devices)
    device.hasAlgorithms = true;
  return other;
}

unsigned Cluster::getLinkNumber(int64_t a, int64_t b) const {
  for (auto [number, link] : llvm::enumerate(links))
    if (link.groupSize == 0 || a / link.groupSize == b / link.groupSize)
      return number;
  return links.size() - 1;
}

std::vector<double> Cluster::countReached(int64_t rank, llvm::ArrayRef<int> others) const {
  std::vector<double> reached(links.size());
  for (int other : others)
    ++reached[getLinkNumber(rank, other)];
  std::partial_sum(reached.begin(), reached.end(), reached.begin());
  return reached;
}

std::vector<std::vector<double>> Cluster::countReached(llvm::ArrayRef<int> members) const {
  std::vector<std::vector<double>> reached(members.size(), std::vector<double>(links.size()));
  for (size_t link = 0; link < links.size(); ++link) {
    int64_t size = links[link].groupSize;
    for (size_t begin = 0, end; begin < members.size(); begin = end) {
      for (end = begin; end < members.size() && (size == 0 || members[end] / size == members[begin] / size);)
        ++end;
      for (size_t i = begin; i < end; ++i)
        reached[i][link] = static_cast<double>(end - begin);
    }
  }
  return reached;
}

double Cluster::getSeconds(const Link &link, const ExchangeWork &work) {
  if (work.phases == 0)
    return 0;
  double further = std::max(work.messages - work.phases, 0.0);
  return link.exchangeSeconds * work.phases + link.messageSeconds * further + work.receivedBytes / link.bytes;
}

/// Ranks that are threads of one process, each with one core of a server: as `dovetail calibrate` finds an AMD EPYC of
/// the fourth generation.
static Cluster getCpus() {
  Device core;
  core.name = "cpu";
  core.stepSeconds = 7e-7;
  core.products32 = 6e10;
  core.products16 = 1.2e11;
  core.halfRows = 4.5;
  core.halfColumns = 1.5;
  core.halfDepth = 0.6;
  core.columnStep = 16;
  core.depthwise = 4.2e10;
  core.halfTaps = 2;
  core.operations = 5e10;
  core.rowStep = 16;
  core.bytes = 3.5e10;
  core.cachedBytes = 1e11;
  core.cacheBytes = 5e6;
  core.nearBytes = 1.8e11;
  core.nearCacheBytes = 3e5;
  core.copiedBytes = 2.3e10;
  core.serialShare = 1;
  return Cluster("cpu", {core}, {{"memory", 0, 1.6e-5, 8e-6, 9e9, /*isCopied=*/true}});
}

/// What a data sheet says of a GPU: multiplications and additions in a second, each counted, of TF32 and FP16 without
/// sparsity and of FP32; bytes in a second of memory and, in one direction, of NVLink.
namespace {
struct DataSheet {
  const char *name;
  int64_t gibibytes;
  double tf32, fp16, fp32, memory, cacheBytes, nvlink;
};
} // namespace

/// GPUs in nodes of eight, NVLink inside of them and InfiniBand of 400 Gbit/s for each between. Programs have part of
/// what data sheets say.
static Cluster getGpus(const DataSheet &sheet) {
  Device gpu;
  gpu.name = sheet.name;
  gpu.memoryBytes = sheet.gibibytes << 30;
  gpu.stepSeconds = 3e-6;
  gpu.products32 = 0.7 * sheet.fp32 / 2;
  gpu.productsTf32 = 0.7 * sheet.tf32 / 2;
  gpu.products16 = 0.7 * sheet.fp16 / 2;
  gpu.halfRows = 512;
  gpu.halfColumns = 64;
  gpu.halfDepth = 64;
  // Vectors of 16 bytes.
  gpu.columnStep = 4;
  gpu.depthwise = 0.25 * sheet.fp32 / 2;
  gpu.operations = 0.5 * sheet.fp32 / 2;
  gpu.bytes = 0.8 * sheet.memory;
  gpu.cachedBytes = 2 * sheet.memory;
  gpu.cacheBytes = sheet.cacheBytes;
  gpu.copiedBytes = gpu.bytes;
  return Cluster(sheet.name, {gpu},
                 {{"NVLink", 8, 1e-5, 1e-6, 0.75 * sheet.nvlink}, {"InfiniBand", 0, 2e-5, 3e-6, 4e10}});
}

static constexpr DataSheet kGpus[] = {
    {"a100", 80, 156e12, 312e12, 19.5e12, 2.0e12, 40e6, 300e9},
    {"h100", 80, 495e12, 989e12, 67e12, 3.35e12, 50e6, 450e9},
    {"h200", 141, 495e12, 989e12, 67e12, 4.8e12, 50e6, 450e9},
    {"b200", 180, 1125e12, 2250e12, 75e12, 8.0e12, 126e6, 900e9},
};

std::optional<Cluster> Cluster::getBuiltIn(llvm::StringRef name) {
  if (name == "cpu")
    return getCpus();
  for (const DataSheet &sheet : kGpus)
    if (name == sheet.name)
      return getGpus(sheet);
  return std::nullopt;
}

std::vector<std::string> Cluster::getBuiltInNames() {
  std::vector<std::string> names = {"cpu"};
  for (const DataSheet &sheet : kGpus)
    names.push_back(sheet.name);
  return names;
}
