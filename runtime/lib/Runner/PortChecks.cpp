//===- PortChecks.cpp - Whether tensors fit the ports of a program -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PortChecks.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <optional>
#include <utility>

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
/// `[2, seq<=512]`.
std::string shapeStr(const Plan &plan, const PortInfo &port) {
  return absl::StrCat("[", absl::StrJoin(plan.describeExtents(port), ", "), "]");
}

/// `wanted`: the shape for messages. Of dimensions in which `mayBeShort` holds there may be less than `shape` says.
absl::Status checkTensor(const std::string &where, ElementType type, const std::vector<int64_t> &shape,
                         const FullTensor &tensor, int device, absl::string_view hint, const std::string &wanted,
                         absl::FunctionRef<bool(size_t dim)> mayBeShort) {
  if (tensor.type != type)
    return absl::InvalidArgumentError(absl::StrCat(where, " has element type ", elementTypeName(type),
                                                   ", but a tensor of ", elementTypeName(tensor.type),
                                                   " was given; convert it"));
  bool fits = tensor.shape.size() == shape.size();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim)
    fits = tensor.shape[dim] == shape[dim] ||
           (mayBeShort(dim) && tensor.shape[dim] >= 0 && tensor.shape[dim] < shape[dim]);
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat(where, " has shape ", wanted, ", but a tensor of shape ",
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
    std::vector<int64_t> shape = plan.tensorBox(port.tensor, rank).shape();
    if (absl::Status status =
            checkTensor(where, port.type, shape, tensors[i], device, "give what lies in the rank's box",
                        shapeStr(shape), [](size_t) { return false; });
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

static absl::Status checkTensors(const char *kind, const Plan &plan, const std::vector<PortInfo> &ports,
                                 absl::Span<const FullTensor> tensors, int device, bool haveLengths) {
  if (ports.size() != tensors.size())
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", ports.size(), " ", kind, "s, but ", tensors.size(), " were given"));
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortInfo &port = ports[i];
    auto mayBeShort = [&](size_t dim) { return haveLengths && plan.getCount(port, dim) >= 0; };
    if (absl::Status status = checkTensor(absl::StrCat(kind, " '", port.name, "'"), port.type, port.shape, tensors[i],
                                          device, "compile the model for that shape or change the tensor",
                                          haveLengths ? shapeStr(plan, port) : shapeStr(port.shape), mayBeShort);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::checkInputs(const Plan &plan, absl::Span<const FullTensor> tensors, int device) {
  if (absl::Status status = checkTensors("input", plan, plan.inputs, tensors, device, /*haveLengths=*/true);
      !status.ok())
    return status;
  // For each count the dimension that said what it is.
  std::vector<std::optional<std::pair<size_t, size_t>>> first(plan.counts.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t dim = 0; dim < tensors[i].shape.size(); ++dim) {
      int32_t count = plan.getCount(plan.inputs[i], dim);
      if (count < 0)
        continue;
      if (!first[count])
        first[count] = {i, dim};
      auto [other, otherDim] = *first[count];
      if (tensors[other].shape[otherDim] != tensors[i].shape[dim])
        return absl::InvalidArgumentError(
            absl::StrCat("'", plan.counts[count].name, "' is ", tensors[other].shape[otherDim], " in dimension ",
                         otherDim, " of input '", plan.inputs[other].name, "', but ", tensors[i].shape[dim],
                         " in dimension ", dim, " of input '", plan.inputs[i].name, "'; give tensors that agree"));
    }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::checkOutputs(const Plan &plan, absl::Span<const FullTensor> tensors, int device) {
  return checkTensors("output", plan, plan.outputs, tensors, device, /*haveLengths=*/false);
}

void dovetail::runtime::setLengths(const Plan &plan, absl::Span<const FullTensor> inputs,
                                   std::vector<int64_t> &counts) {
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t dim = 0; dim < inputs[i].shape.size(); ++dim)
      if (int32_t count = plan.getCount(plan.inputs[i], dim); count >= 0)
        counts[count] = inputs[i].shape[dim];
}
