//===- CutWeights.h - How unequal pieces are --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares CutWeights: how large the pieces of unequal ranks are to be.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_CUTWEIGHTS_H
#define DOVETAIL_LIB_SHARDING_CUTWEIGHTS_H

#include "dovetail/Cost/OpCosts.h"

namespace dovetail {

/// The time of operations on ranks of a mesh, and sizes of pieces that follow from it. Of no use where ranks are equal.
class CutWeights {
public:
  /// `mostShares`: of each rank, the share of what is divided that it may have; empty if any.
  /// `slowness`: how many times as long as estimated work takes it; empty if once.
  CutWeights(const layout::Mesh &mesh, const Cluster &cluster, llvm::ArrayRef<double> mostShares,
             llvm::ArrayRef<double> slowness);

  /// Whether ranks differ in what steps take them, or in what they may have.
  bool areUnequal() const { return kinds.size() > 1 || !mostShares.empty(); }

  bool areLimited() const { return !mostShares.empty(); }

  /// An operation whose loops are `count` places from number `first` on. They come in the order of the program.
  void addOperation(OpCosts work, unsigned first, unsigned count);

  /// The parts into which mesh axes divide something. Parts of equal ranks are of one class.
  struct Parts {
    struct Class {
      /// Kinds of devices of its ranks, and the share that each part may have.
      llvm::SmallVector<unsigned> kinds;
      double most = 1;
      /// How many times as long as estimated work takes them.
      double slowness = 0;
      /// How many parts are of this class.
      double count = 0;
    };
    std::vector<Class> classes;
    std::vector<unsigned> classOf;
  };
  /// For each class what a part of it is to have, in proportion.
  using Shares = std::vector<double>;

  /// `numbers`: of the axes.
  Parts getParts(llvm::ArrayRef<int> numbers) const;
  /// Cuts of these shares, so that the part that is longest at it takes least.
  static std::vector<int64_t> getCuts(int64_t extent, const Parts &parts, const Shares &shares);
  /// By how much the share of a part is larger than it may be.
  static double getExcess(llvm::ArrayRef<int64_t> cuts, const Parts &parts);

  /// The time of a part for an operation that is cut along one place: `base` if it has anything, and `slope` times its
  /// share.
  struct Line {
    double base = 0, slope = 0;

    double get(double share) const { return share > 0 ? base + slope * share : 0; }
    Line &operator+=(const Line &other) {
      base += other.base;
      slope += other.slope;
      return *this;
    }
  };
  /// One operation among connected ones.
  struct Placed {
    unsigned number;
    /// Of the places along which it may be cut, the lines of each class.
    llvm::SmallVector<std::pair<unsigned, llvm::SmallVector<Line, 4>>, 2> places;
  };
  /// The operations of `places`, which ascend.
  std::vector<Placed> find(llvm::ArrayRef<unsigned> places, const Parts &parts) const;

  /// Shares that may be best for these operations. All parts take as long for all of them, with the slowest parts or
  /// without; or for products alone, or for all else.
  std::vector<Shares> getCandidates(llvm::ArrayRef<Placed> operations, const Parts &parts) const;
  /// Shares that differ somewhat from these.
  static std::vector<Shares> getVariants(const Shares &shares, const Parts &parts);
  /// Those with which parts take as long for all operations together.
  Shares getOverall(const Parts &parts) const;

private:
  Line getLine(unsigned number, unsigned loop, unsigned kind, size_t numParts) const;
  /// In proportion to `shares`, but none more than it may have.
  static Shares limit(Shares shares, const Parts &parts);
  /// Such that all parts that are not left out take as long. `isLeftOut`: by class.
  static Shares level(llvm::ArrayRef<Line> work, const Parts &parts, llvm::ArrayRef<bool> isLeftOut);

  struct Work {
    OpCosts model;
    unsigned first, count;
    /// Of each kind, for all of it.
    llvm::SmallVector<double, 4> seconds;
  };

  const layout::Mesh &mesh;
  std::vector<double> mostShares, slowness;
  /// Devices that differ by more than names and memory, and of each rank the number of its kind.
  std::vector<Device> kinds;
  std::vector<unsigned> kindOf;
  std::vector<Work> works;
  /// By place, the number of its operation.
  llvm::DenseMap<unsigned, unsigned> workOf;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_CUTWEIGHTS_H
