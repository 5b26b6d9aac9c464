//===- ExchangeTiming.h - How ranks carry out exchanges ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ExchangeEngine, and what it takes to do collectives and messages over links of several levels.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_EXCHANGETIMING_H
#define DOVETAIL_COST_EXCHANGETIMING_H

#include "dovetail/Cost/Cluster.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace dovetail {

/// How ranks carry out exchanges.
enum class ExchangeEngine {
  /// Ranks are threads: each copies what it needs from the memory of others itself, from one after the other, and does
  /// nothing else meanwhile. Collectives are such copies, too.
  Threads,
  /// Ranks are devices: exchanges go on beside steps, one after the other, and a library does collectives.
  Streams,
};

/// How ranks of a program that has its memory there carry out exchanges.
ExchangeEngine getExchangeEngine(plan::ProgramMemory memory);

/// What a rank has to do with others over links of one level.
struct LinkTraffic {
  double receivedBytes = 0, sentBytes = 0;
  double receivedMessages = 0, sentMessages = 0;
};

/// What a member of a collective has to do with the others, by link of the cluster. `partBytes`: of what each of them
/// gives (all-gather), gets (reduce-scatter), or both (all-reduce). `near`: how many of them, itself among them, a
/// member reaches over links up to each one; the last of these reaches all.
///
/// A library does a collective level by level: within groups of ranks that are close to each other, then among those at
/// the same place in different groups. Parts of a result are gathered over the farthest links first, where each rank
/// has least, and scattered over them last. Steps are as many as a tree is deep.
llvm::SmallVector<LinkTraffic> getCollectiveTraffic(layout::ExchangeKind kind, double partBytes,
                                                    llvm::ArrayRef<double> near);

/// Bytes that a member of a packed gather copies within its own memory, with blocks of `blockBytes`: it packs its own,
/// and unpacks all.
inline double getPackedBytes(double blockBytes, double members) { return blockBytes * (members + 1); }

/// What copying so many bytes within a rank's memory takes: they are read and written.
inline double getCopySeconds(double bytes, const Device &device) { return 2 * bytes / device.bytes; }

/// What that takes, with `traffic` of each of `links`: a collective goes over one level after the other, messages go
/// over all at once.
double getStreamSeconds(llvm::ArrayRef<LinkTraffic> traffic, llvm::ArrayRef<Link> links, bool isCollective);

} // namespace dovetail

#endif // DOVETAIL_COST_EXCHANGETIMING_H
