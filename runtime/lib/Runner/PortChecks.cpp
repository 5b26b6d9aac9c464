//===- PortChecks.cpp - Whether tensors fit the ports of a program -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PortChecks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

std::string shapeStr(const std::vector<int64_t> &shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

absl::Status checkDevice(const std::string &where, const FullTensor &tensor, int known) {
  if (tensor.device == 0 || tensor.device == known)
    return absl::OkStatus();
  if (known == 0)
    return absl::InvalidArgumentError(absl::StrCat(where, " was given a tensor that is not on the CPU, where the ",
                                                   "program runs; copy the tensor to the host"));
  return absl::InvalidArgumentError(absl::StrCat(where, " was given a tensor on a device of DLPack's kind ",
                                                 tensor.device, ", but the program's ", "devices are of kind ", known,
                                                 "; copy the tensor to one of them, or to the host"));
}

/// `hint` is what to do about another shape than `shape`.
absl::Status checkTensor(const std::string &where, ElementType type, const std::vector<int64_t> &shape,
                         const FullTensor &tensor, int device, absl::string_view hint) {
  if (tensor.type != type)
    return absl::InvalidArgumentError(absl::StrCat(where, " has element type ", elementTypeName(type),
                                                   ", but a tensor of ", elementTypeName(tensor.type),
                                                   " was given; convert it"));
  if (tensor.shape != shape)
    return absl::InvalidArgumentError(absl::StrCat(where, " has shape ", shapeStr(shape), ", but a tensor of shape ",
                                                   shapeStr(tensor.shape), " was given; ", hint));
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())
    return absl::InvalidArgumentError(absl::StrCat(where, " was given with ", tensor.strides.size(), " strides for ",
                                                   tensor.shape.size(), " dimensions"));
  if (absl::Status status = checkDevice(where, tensor, device); !status.ok())
    return status;
  if (!tensor.data && layout::Box::ofShape(tensor.shape).volume() > 0)
    return absl::InvalidArgumentError(absl::StrCat(where, " was given without data"));
  return absl::OkStatus();
}

} // namespace

absl::Status dovetail::runtime::checkLocalTensors(const char *kind, const Plan &plan,
                                                  const std::vector<PortInfo> &ports,
                                                  absl::Span<const FullTensor> tensors, const std::vector<int> &ranks,
                                                  int device) {
  if (tensors.size() != ports.size() * ranks.size())
    return absl::InvalidArgumentError(absl::StrCat("the program has ", ports.size(), " ", kind, "s on each of ",
                                                   ranks.size(), " ranks of this process, but ", tensors.size(),
                                                   " tensors were given"));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PortInfo &port = ports[i % ports.size()];
    int rank = ranks[i / ports.size()];
    std::string where = absl::StrCat("what rank ", rank, " holds of ", kind, " '", port.name, "'");
    if (absl::Status status = checkTensor(where, port.type, plan.tensorBox(port.tensor, rank).shape(), tensors[i],
                                          device, "give what lies in the rank's box");
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::checkTensors(const char *kind, const std::vector<PortInfo> &ports,
                                             absl::Span<const FullTensor> tensors, int device) {
  if (ports.size() != tensors.size())
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", ports.size(), " ", kind, "s, but ", tensors.size(), " were given"));
  for (size_t i = 0; i < ports.size(); ++i)
    if (absl::Status status = checkTensor(absl::StrCat(kind, " '", ports[i].name, "'"), ports[i].type, ports[i].shape,
                                          tensors[i], device, "compile the model for that shape or change the tensor");
        !status.ok())
      return status;
  return absl::OkStatus();
}
