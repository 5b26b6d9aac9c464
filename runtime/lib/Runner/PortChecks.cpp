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

} // namespace

absl::Status dovetail::runtime::checkTensors(const char *kind, const std::vector<PortInfo> &ports,
                                             absl::Span<const FullTensor> tensors, int device) {
  if (ports.size() != tensors.size())
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", ports.size(), " ", kind, "s, but ", tensors.size(), " were given"));
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string where = absl::StrCat(kind, " '", ports[i].name, "'");
    if (tensors[i].type != ports[i].type)
      return absl::InvalidArgumentError(absl::StrCat(where, " has element type ", elementTypeName(ports[i].type),
                                                     ", but a tensor of ", elementTypeName(tensors[i].type),
                                                     " was given; convert it"));
    if (tensors[i].shape != ports[i].shape)
      return absl::InvalidArgumentError(absl::StrCat(
          where, " has shape ", shapeStr(ports[i].shape), ", but a tensor of shape ", shapeStr(tensors[i].shape),
          " was given; compile the model for that shape or change the tensor"));
    if (!tensors[i].strides.empty() && tensors[i].strides.size() != tensors[i].shape.size())
      return absl::InvalidArgumentError(absl::StrCat(where, " was given with ", tensors[i].strides.size(),
                                                     " strides for ", tensors[i].shape.size(), " dimensions"));
    if (absl::Status status = checkDevice(where, tensors[i], device); !status.ok())
      return status;
    if (!tensors[i].data && layout::Box::ofShape(tensors[i].shape).volume() > 0)
      return absl::InvalidArgumentError(absl::StrCat(where, " was given without data"));
  }
  return absl::OkStatus();
}
