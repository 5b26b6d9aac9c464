//===- CallChecks.cpp - How library calls of a plan must fit --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the checks of library calls and their epilogues.
//
//===----------------------------------------------------------------------===//

#include "PlanValidator.h"
#include "Validator.h"

#include "dovetail/Calls/AttentionForm.h"

#include "absl/strings/str_join.h"

#include <array>
#include <limits>

using namespace dovetail;
using namespace dovetail::runtime;

static std::string shapeStr(const std::vector<int64_t> &shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

/// Behind all dimensions.
static constexpr size_t noWindow = std::numeric_limits<size_t>::max();

absl::Status Validator::checkPostOps(const std::string &where, const std::vector<PostOpInfo> &ops, uint32_t output) {
  const std::vector<int64_t> &result = shape(output);
  for (const PostOpInfo &op : ops) {
    if (!op.readsTensor())
      continue;
    const std::vector<int64_t> &operand = shape(op.tensor);
    bool fits = operand.size() <= result.size() && sameType(op.tensor, output);
    for (size_t i = 0; fits && i < operand.size(); ++i) {
      int64_t extent = operand[operand.size() - 1 - i];
      fits = extent == 1 || extent == result[result.size() - 1 - i];
    }
    if (!fits)
      return damaged(where, " has a post-op whose operand ", shapeStr(operand), " does not broadcast to ",
                     shapeStr(result));
  }
  return absl::OkStatus();
}

/// The loops of a library call: the dimensions of `output`, then `sums` sums, then `taps` taps. Its operands have the
/// extents and types that it goes through.
absl::Status Validator::checkLoops(const std::string &where, const std::vector<LoopInfo> &loops, uint32_t output,
                                   size_t sums, size_t taps, std::initializer_list<Read> reads) {
  size_t rank = shape(output).size();
  std::vector<int64_t> extents;
  layout::Sharding sharding;
  for (const LoopInfo &loop : loops) {
    extents.push_back(loop.extent);
    sharding.dims.push_back(loop.dim);
  }
  if (loops.size() != rank + sums + taps || !std::equal(shape(output).begin(), shape(output).end(), extents.begin()))
    return damaged(where, " has loops of ", shapeStr(extents), ", which do not go through its result, ",
                   shapeStr(shape(output)));
  for (const Read &read : reads) {
    ElementType type = plan.bufferOf(read.tensor).type;
    bool isByte = type == ElementType::I8 || type == ElementType::U8;
    // CPUs have products of integers of 8 bits in i32.
    bool isProduct = sums > 0 && isByte && plan.bufferOf(output).type == ElementType::I32 && !plan.isForDevice();
    if (!sameType(read.tensor, output) && !isProduct)
      return damaged(where, " has operands of different types");
    if (!calls::fits(read.access, shape(read.tensor), extents, read.firstWindow))
      return damaged(where, " reads a tensor of ", shapeStr(shape(read.tensor)), " as one of other extents");
  }
  if (std::string why; !sharding.verify(plan.mesh, extents, &why))
    return damaged(where, " has loops with a wrong sharding: ", why);
  const layout::Sharding &result = plan.tensors[output].sharding;
  layout::Sharding parallel;
  parallel.dims.assign(sharding.dims.begin(), sharding.dims.begin() + static_cast<std::ptrdiff_t>(rank));
  if (!result.contains(plan.mesh, shape(output), parallel))
    for (int number = 0, ranks = plan.mesh.numRanks(); number < ranks; ++number)
      if (!plan.tensorBox(output, number).contains(parallel.boxOf(plan.mesh, shape(output), number)))
        return damaged(where, " computes elements that are outside of its result on rank ", number);
  for (size_t dim = rank + sums; dim < loops.size(); ++dim)
    if (loops[dim].dim.isSplit())
      return damaged(where, " splits loop ", dim, ", which is a tap");
  for (size_t dim = rank; dim < rank + sums; ++dim) {
    if (!loops[dim].dim.isCuts(extents[dim]))
      return damaged(where, " does not count each term of its sum once");
    for (int axis : loops[dim].dim.axes)
      if (result.partialKind != layout::ReductionKind::Sum ||
          std::find(result.partialAxes.begin(), result.partialAxes.end(), axis) == result.partialAxes.end())
        return damaged(where, " splits its sum over a mesh axis over which its result is not a partial sum");
  }
  return absl::OkStatus();
}

absl::Status Validator::checkConvolution(const std::string &where, const ConvolutionCall &call) {
  if (absl::Status status =
          checkLoops(where, call.loops, call.output, /*sums=*/1, call.form.windows.size(),
                     {{call.input, call.inputAccess, 2}, {call.weights, call.weightsAccess, noWindow}});
      !status.ok())
    return status;
  return checkPostOps(where, call.postOps, call.output);
}

/// Whether each row of the result is made of the same row of the first factor, and nothing else of it.
bool Validator::mayWriteOver(const MatMulCall &call) const {
  size_t rank = shape(call.output).size();
  if (plan.isForDevice() || call.aAccess.size() != rank || shape(call.a) != shape(call.output))
    return false;
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    if (!(call.aAccess[dim] == layout::AccessDim(layout::IndexExpr::loop(static_cast<int>(dim)))))
      return false;
  for (const PostOpInfo &op : call.postOps)
    if (op.readsTensor() && plan.tensors[op.tensor].buffer == plan.tensors[call.output].buffer)
      return false;
  return true;
}

absl::Status Validator::checkMatMul(const std::string &where, const MatMulCall &call) {
  if (absl::Status status = checkLoops(where, call.loops, call.output, /*sums=*/1, /*taps=*/0,
                                       {{call.a, call.aAccess, noWindow}, {call.b, call.bAccess, noWindow}});
      !status.ok())
    return status;
  const std::vector<int64_t> &b = shape(call.b);
  size_t rows = call.rowDims, rb = b.size();
  bool fits = rows < shape(call.output).size() && (rows == 1 || !call.form.transposesA);
  for (size_t i = 3; fits && i < rows + 2 && i <= rb; ++i)
    fits = b[rb - i] == 1;
  if (!fits)
    return damaged(where, " has rows of ", rows, " dimensions, on which the second operand ", shapeStr(b), " depends");
  return checkPostOps(where, call.postOps, call.output);
}

absl::Status Validator::checkPool(const std::string &where, const PoolCall &call) {
  return checkLoops(where, call.loops, call.output, /*sums=*/0, call.form.windows.size(),
                    {{call.input, call.inputAccess, 2}});
}

/// Whether each rank has one iteration of `parts` at most, and each iteration of `keys` belongs to one of these.
static bool isOfParts(const LoopInfo &parts, const LoopInfo &keys) {
  if (!parts.dim.isSplit())
    return parts.extent <= 1 && !keys.dim.isSplit();
  if (keys.dim.axes != parts.dim.axes || !keys.dim.isCuts(keys.extent) || !parts.dim.isCuts(parts.extent))
    return false;
  return std::equal(keys.dim.pieces.begin(), keys.dim.pieces.end(), parts.dim.pieces.begin(), parts.dim.pieces.end(),
                    [](const layout::Interval &own, const layout::Interval &part) {
                      return part.size() == 1 || (part.empty() && own.empty());
                    });
}

absl::Status Validator::checkAttention(const std::string &where, const AttentionCall &call) {
  std::vector<LoopInfo> loops = call.loops;
  if (call.isOfParts) {
    if (loops.size() < 5)
      return damaged(where, " gives parts, but has no loop over them");
    LoopInfo &keys = loops[loops.size() - 2];
    if (std::string why; !layout::Sharding{{keys.dim}, {}}.verify(plan.mesh, std::array{keys.extent}, &why))
      return damaged(where, " has parts with wrong keys: ", why);
    if (!isOfParts(loops.front(), keys))
      return damaged(where, " does not have each key in one part");
    keys.dim = {};
  }
  if (absl::Status status = checkLoops(where, loops, call.output, /*sums=*/0, /*taps=*/2, {}); !status.ok())
    return status;
  std::vector<int64_t> extents;
  for (const LoopInfo &loop : call.loops)
    extents.push_back(loop.extent);
  std::vector<calls::AccessDims> accesses;
  for (const auto &operand : call.operands())
    accesses.emplace_back(*operand.second);
  if (call.isOfParts) {
    int64_t &columns = extents[extents.size() - 3];
    if (columns <= calls::attentionPartColumns || loops[extents.size() - 3].dim.isSplit())
      return damaged(where, " gives parts without whole columns of values, scores and sums");
    if (calls::AttentionForm::find(accesses, extents)->columns != columns)
      return damaged(where, " gives parts of several heads in its columns");
    columns -= calls::attentionPartColumns;
  }
  for (const auto &[tensor, access] : call.operands()) {
    // Operands may be more than what is read of them.
    if (!calls::staysInside(*access, shape(tensor), extents))
      return damaged(where, " reads a tensor of ", shapeStr(shape(tensor)), " as one of other extents");
    if (static_cast<int64_t>(tensor) != call.mask && !sameType(tensor, call.output))
      return damaged(where, " has operands of different types");
  }
  for (const auto &[tensor, access] : call.operands())
    if (plan.tensors[tensor].buffer == plan.tensors[call.output].buffer &&
        (access != &call.queryAccess || !calls::mayWriteOverQueries(accesses, extents)))
      return damaged(where, " writes over its own operand");
  if (plan.isForDevice())
    return damaged(where, " is for CPUs only");
  if (plan.bufferOf(call.output).type != ElementType::F32)
    return damaged(where, " is not in f32");
  if (call.mask < 0)
    return absl::OkStatus();
  auto mask = static_cast<uint32_t>(call.mask);
  const BufferInfo &buffer = plan.bufferOf(mask);
  if (buffer.type != ElementType::F32 && buffer.type != ElementType::Bool)
    return damaged(where, " has a mask that is neither f32 nor of booleans");
  return absl::OkStatus();
}

absl::Status Validator::checkTransform(const std::string &where, const TransformCall &call) {
  if (absl::Status status = checkLoops(where, call.loops, call.output, /*sums=*/2, /*taps=*/0,
                                       {{call.input, call.inputAccess, noWindow}});
      !status.ok())
    return status;
  if (!plan.isForDevice())
    return damaged(where, " is for devices only");
  ElementType type = plan.bufferOf(call.output).type;
  if (type != ElementType::F32 && type != ElementType::F64)
    return damaged(where, " is in neither f32 nor f64");
  if (call.isInverse ? call.form.readsReal : call.form.writesReal)
    return damaged(where,
                   call.isInverse ? " is inverse, but reads real numbers" : " writes real numbers, but is not inverse");
  size_t rank = shape(call.output).size();
  for (size_t loop = 0; loop < call.loops.size(); ++loop)
    if (call.loops[loop].dim.isSplit() && (loop == call.form.axis || loop + 1 >= rank))
      return damaged(where, " splits loop ", loop, ", which it transforms");
  return absl::OkStatus();
}
