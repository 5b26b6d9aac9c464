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

/// `[2, seq<=512]`.
std::string shapeStr(const Plan &plan, const PortInfo &port) {
  return absl::StrCat("[", absl::StrJoin(plan.describeExtents(port), ", "), "]");
}

/// What tensors of a port have to be like.
struct Wanted {
  std::string where; ///< As in messages.
  ElementType type;
  std::string shape;      ///< For messages.
  absl::string_view hint; ///< What to do about another one.
  absl::FunctionRef<bool(const std::vector<int64_t> &shape)> fits;
};

absl::Status checkShape(const Wanted &wanted, const std::vector<int64_t> &shape) {
  if (wanted.fits(shape))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(wanted.where, " has shape ", wanted.shape, ", but a tensor of shape ",
                                                 shapeStr(shape), " was given; ", wanted.hint));
}

absl::Status checkTensor(const Wanted &wanted, const FullTensor &tensor, int device) {
  const std::string &where = wanted.where;
  if (tensor.type != wanted.type)
    return absl::InvalidArgumentError(absl::StrCat(where, " has element type ", elementTypeName(wanted.type),
                                                   ", but a tensor of ", elementTypeName(tensor.type),
                                                   " was given; convert it"));
  if (absl::Status status = checkShape(wanted, tensor.shape); !status.ok())
    return status;
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
    std::string where = absl::StrCat("the part of rank ", rank, " of ", kind, " '", port.name, "'");
    std::vector<int64_t> shape = plan.tensorBox(port.tensor, rank).shape();
    auto fits = [&](const std::vector<int64_t> &given) { return given == shape; };
    Wanted wanted{where, port.type, shapeStr(shape), "give the elements of the rank's box", fits};
    if (absl::Status status = checkTensor(wanted, tensors[i], device); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// Calls `body` with each port, its number among `count` that were given, and what it wants.
static absl::Status forEachPort(const char *kind, const Plan &plan, const std::vector<PortInfo> &ports, size_t count,
                                bool haveLengths, absl::FunctionRef<absl::Status(size_t, const Wanted &)> body) {
  if (ports.size() != count)
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", ports.size(), " ", kind, "s, but ", count, " were given"));
  for (size_t i = 0; i < count; ++i) {
    const PortInfo &port = ports[i];
    auto fits = [&](const std::vector<int64_t> &given) {
      return haveLengths ? plan.fits(port, given) : given == port.shape;
    };
    Wanted wanted{absl::StrCat(kind, " '", port.name, "'"), port.type,
                  haveLengths ? shapeStr(plan, port) : shapeStr(port.shape),
                  haveLengths && plan.isBounded(port)
                      ? "compile the model for that shape, as with a larger --bound, or change the tensor"
                      : "compile the model for that shape or change the tensor",
                  fits};
    if (absl::Status status = body(i, wanted); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// That dimensions of one length have the same extent.
static absl::Status compareLengths(const Plan &plan, absl::FunctionRef<const std::vector<int64_t> &(size_t)> shapeOf) {
  // For each count the dimension that said what it is.
  std::vector<std::optional<std::pair<size_t, size_t>>> first(plan.counts.size());
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    for (size_t dim = 0; dim < shapeOf(i).size(); ++dim) {
      int32_t count = plan.getCount(plan.inputs[i], dim);
      if (count < 0)
        continue;
      if (!first[count])
        first[count] = {i, dim};
      auto [other, otherDim] = *first[count];
      if (shapeOf(other)[otherDim] != shapeOf(i)[dim])
        return absl::InvalidArgumentError(
            absl::StrCat("'", plan.counts[count].name, "' is ", shapeOf(other)[otherDim], " in dimension ", otherDim,
                         " of input '", plan.inputs[other].name, "', but ", shapeOf(i)[dim], " in dimension ", dim,
                         " of input '", plan.inputs[i].name, "'; give tensors that agree"));
    }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::checkInputs(const Plan &plan, absl::Span<const FullTensor> tensors, int device) {
  absl::Status status =
      forEachPort("input", plan, plan.inputs, tensors.size(), /*haveLengths=*/true,
                  [&](size_t i, const Wanted &wanted) { return checkTensor(wanted, tensors[i], device); });
  if (!status.ok())
    return status;
  return compareLengths(plan, [&](size_t i) -> const std::vector<int64_t> & { return tensors[i].shape; });
}

absl::Status dovetail::runtime::checkShapes(const Plan &plan, absl::Span<const std::vector<int64_t>> shapes) {
  absl::Status status = forEachPort("input", plan, plan.inputs, shapes.size(), /*haveLengths=*/true,
                                    [&](size_t i, const Wanted &wanted) { return checkShape(wanted, shapes[i]); });
  if (!status.ok())
    return status;
  return compareLengths(plan, [&](size_t i) -> const std::vector<int64_t> & { return shapes[i]; });
}

absl::Status dovetail::runtime::checkOutputs(const Plan &plan, absl::Span<const FullTensor> tensors, int device) {
  return forEachPort("output", plan, plan.outputs, tensors.size(), /*haveLengths=*/false,
                     [&](size_t i, const Wanted &wanted) { return checkTensor(wanted, tensors[i], device); });
}

absl::Status dovetail::runtime::checkNoCounts(const Plan &plan) {
  if (plan.counts.empty())
    return absl::OkStatus();
  const CountInfo &count = plan.counts[0];
  return absl::UnimplementedError(absl::StrCat(
      count.isGiven ? "lengths of inputs vary from run to run ('" : "the extents of outputs depend on data ('",
      count.name, "'), which is not supported where ranks have parts of their own; give full tensors"));
}
