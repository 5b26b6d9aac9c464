//===- StubTransport.cpp - A transport that connects nobody ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plug-in as somebody else might write it. What it is asked for comes back as an error.
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/PluginBuild.h"
#include "dovetail/runtime/Transport.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;

namespace {

absl::StatusOr<std::string> nameGroup() { return "a group"; }

absl::StatusOr<std::unique_ptr<Transport>> joinGroup(const std::string &name, GroupMember member) {
  return absl::UnavailableError(absl::StrCat("joins '", name, "' as ", member.rank, " of ", member.size,
                                             member.device ? " with a device" : " without a device"));
}

std::vector<std::pair<std::string, std::string>> listLibraries() { return {{"libstub", "7"}}; }

} // namespace

extern "C" __attribute__((visibility("default"))) const TransportPlugin *dovetailTransportPlugin() {
  static const TransportPlugin plugin = {STUB_VERSION, STUB_BUILD, STUB_MEMORY,  "connects nobody",
                                         nameGroup,    joinGroup,  listLibraries};
  return &plugin;
}
