//===- TransportRegistry.h - Transports by name --------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what the runtime knows of each transport, one of its own or a plug-in.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_TRANSPORTREGISTRY_H
#define DOVETAIL_RUNTIME_TRANSPORT_TRANSPORTREGISTRY_H

#include "dovetail/runtime/RankGroup.h"

#include <functional>

namespace dovetail::runtime {

struct TransportEntry {
  TransportInfo info;
  std::function<absl::StatusOr<std::unique_ptr<RankGroup>>(const ConnectionRequest &request)> connect;
};

/// `local`: all ranks are threads of this process.
TransportEntry localTransport();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_TRANSPORTREGISTRY_H
