//===- Cluster.h - Devices, links, and how long they take -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Cluster, the devices of ranks and the links between them, and how long these take for what.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_CLUSTER_H
#define DOVETAIL_COST_CLUSTER_H

#include "dovetail/Calls/ConvolutionAlgorithms.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dovetail {

/// A size such as `80GiB`, `512MB` or `1000`, in bytes; nothing if it is none.
std::optional<double> parseBytes(llvm::StringRef text);

/// What one rank does in one step, as far as it says how long that takes.
struct StepWork {
  enum class Kind {
    /// A sum of products, by a library: `batch` products of `rows` x `depth` with `depth` x `columns`.
    Product,
    /// A generated kernel, or a library's pooling: `operations` scalar ones.
    Elements,
    /// Elements that go from one place in memory to another.
    Copy,
  };

  Kind kind = Kind::Elements;
  /// Bits of an element of the factors or results; 19 of factors of 32 bits that are rounded to TF32.
  unsigned bits = 32;
  /// Of products. What is summed over, taps of windows among it, is the depth. Many products of one column are those of
  /// a depthwise convolution. Of elements, columns are those of a row which vectors do not go beyond; 1 if they do.
  double batch = 1, rows = 1, columns = 1, depth = 1;
  /// Multiplications with additions of products; else scalar operations, of which an addition is one and an exponential
  /// as many as it takes the time of.
  double operations = 0;
  /// Scalar operations that a library applies to the results of products.
  double resultOperations = 0;
  double readBytes = 0, writtenBytes = 0;

  /// Of a convolution in f32, which this is: what it takes by `algorithm`, a choice, where it has so many iterations.
  StepWork by(const calls::AlgorithmEntry &algorithm, llvm::ArrayRef<int64_t> loops) const;
};

/// A device, or the cores of a CPU that a rank has. Times are in seconds, sizes in bytes.
struct Device {
  std::string name;
  /// Memory for weights, values and scratch; 0 where that is not known.
  int64_t memoryBytes = 0;
  /// What it takes to begin a step.
  double stepSeconds = 0;
  /// Multiplications with additions in a second, at best, of factors of 32 bits and of 16.
  double products32 = 0, products16 = 0;
  /// The same of factors that are rounded to TF32; 0 where that makes no difference to those of 32 bits.
  double productsTf32 = 0;
  /// Of a product, how many rows, columns and terms make half of that speed.
  double halfRows = 0, halfColumns = 0, halfDepth = 0;
  /// Columns of 32 bits that are computed together: of more, the next multiple is. Of depthwise convolutions channels.
  double columnStep = 1;
  /// The speed of depthwise convolutions, and of how many terms they have half of it.
  double depthwise = 0, halfTaps = 0;
  /// Scalar operations of kernels in a second, on elements of 32 bits.
  double operations = 0;
  /// Elements of 32 bits in a vector of a kernel. What is left over at the end of a row takes as long as so many
  /// vectors.
  double rowStep = 1;
  /// Bytes that are read or written in a second, in memory and where all of a step lies in a cache of `cacheBytes`.
  double bytes = 0, cachedBytes = 0, cacheBytes = 0;
  /// The same of a smaller cache, of `nearCacheBytes`; 0 where there is none.
  double nearBytes = 0, nearCacheBytes = 0;
  /// The same of copies, which go element by element, wherever these lie.
  double copiedBytes = 0;
  /// Of computing and moving bytes, which go on at the same time, the part of the shorter one that comes on top.
  double serialShare = 0;
  /// Whether convolutions may be done by algorithms of the runtime's own: what these take follows from the speeds
  /// above.
  bool hasAlgorithms = false;

  /// What a step takes. Nothing where there is nothing to do.
  double getSeconds(const StepWork &work) const;

  /// A device as fast as this one, whatever its name and memory.
  Device getKind() const {
    Device kind = *this;
    kind.name.clear();
    kind.memoryBytes = 0;
    return kind;
  }

  bool operator==(const Device &) const = default;

private:
  double getProductSeconds(const StepWork &work) const;
  double getMovingSeconds(double moved) const;
};

/// How ranks of a group reach each other.
struct Link {
  std::string name;
  /// Ranks of a group follow each other; 0 for all.
  int64_t groupSize = 0;
  /// What it takes to begin an exchange, and each message after the first.
  double exchangeSeconds = 0, messageSeconds = 0;
  /// Bytes in a second that a rank receives.
  double bytes = 0;
  /// Of ranks that are threads or processes on CPUs: whether they copy from each other's memory over it themselves;
  /// else messages go over it beside their steps.
  bool isCopied = false;

  bool operator==(const Link &) const = default;
};

/// What an exchange asks of the rank that takes longest.
struct ExchangeWork {
  double receivedBytes = 0;
  double messages = 0;
  /// Exchanges one after the other.
  int phases = 0;
};

/// The devices of ranks, in the order of ranks, and the links between them. Immutable. docs/cluster-files.md describes
/// files.
class Cluster {
public:
  /// `devices` are those of the first ranks, and of as many again where there are more ranks; `links` connect ever
  /// larger groups, the last one all ranks. Neither may be empty. `numRanks`: how many there may be; 0 for any number.
  Cluster(std::string name, std::vector<Device> devices, std::vector<Link> links, int64_t numRanks = 0)
      : name(std::move(name)), devices(std::move(devices)), links(std::move(links)), numRanks(numRanks) {}

  /// One of those that are built in: `cpu`, `a100`, `h100`, `h200`, `b200`.
  static std::optional<Cluster> getBuiltIn(llvm::StringRef name);
  static std::vector<std::string> getBuiltInNames();

  /// Reads a file's text. Errors begin with `file` and name the key and what to do.
  static llvm::Expected<Cluster> parse(llvm::StringRef text, llvm::StringRef file);
  /// What `parse` reads: JSON.
  std::string write() const;

  const std::string &getName() const { return name; }
  const Device &getDevice(int64_t rank) const { return devices[rank % devices.size()]; }
  /// Whether all ranks have the same device.
  bool isUniform() const { return devices.size() == 1; }
  /// The same where factors of 32 bits are rounded to TF32, which has 19 bits, or to 16 bits.
  Cluster roundingFactors(unsigned bits) const;
  /// The same where convolutions may be done by algorithms of the runtime's own.
  Cluster withAlgorithms() const;
  /// Those of the first ranks; ranks beyond have them once more.
  const std::vector<Device> &getDevices() const { return devices; }
  /// How many ranks there may be, at most; nothing for any number.
  std::optional<int64_t> getNumRanks() const { return numRanks ? std::optional(numRanks) : std::nullopt; }
  const std::vector<Link> &getLinks() const { return links; }
  /// The link between two ranks, and its number.
  const Link &getLink(int64_t a, int64_t b) const { return links[getLinkNumber(a, b)]; }
  unsigned getLinkNumber(int64_t a, int64_t b) const;
  /// Of each link, how many of `others` a rank reaches over links up to it.
  std::vector<double> countReached(int64_t rank, llvm::ArrayRef<int> others) const;
  /// The same of each of `members`, which ascend, among these.
  std::vector<std::vector<double>> countReached(llvm::ArrayRef<int> members) const;
  /// What an exchange takes over a link.
  static double getSeconds(const Link &link, const ExchangeWork &work);

private:
  std::string name;
  std::vector<Device> devices;
  std::vector<Link> links;
  int64_t numRanks;
};

} // namespace dovetail

#endif // DOVETAIL_COST_CLUSTER_H
