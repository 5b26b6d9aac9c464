//===- Summary.cpp - Tensors in a few numbers -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/Summary.h"

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

/// The upper half of a float.
struct BFloat16 {
  uint16_t bits;
  explicit operator double() const { return absl::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <typename T> void addAll(Summary &summary, const std::byte *elements, int64_t count) {
  const T *data = reinterpret_cast<const T *>(elements);
  summary.count += count;
  for (int64_t i = 0; i < count; ++i) {
    double value = static_cast<double>(data[i]);
    if (std::isnan(value)) {
      ++summary.invalid;
      continue;
    }
    summary.infinite += std::isinf(value);
    summary.least = std::min(summary.least, value);
    summary.most = std::max(summary.most, value);
    summary.sum += value;
  }
}

} // namespace

void Summary::add(runtime::ElementType type, const std::byte *elements, int64_t number) {
  using runtime::ElementType;
  switch (type) {
  case ElementType::F32:
    return addAll<float>(*this, elements, number);
  case ElementType::F64:
    return addAll<double>(*this, elements, number);
  case ElementType::F16:
    return addAll<_Float16>(*this, elements, number);
  case ElementType::BF16:
    return addAll<BFloat16>(*this, elements, number);
  case ElementType::I8:
    return addAll<int8_t>(*this, elements, number);
  case ElementType::I16:
    return addAll<int16_t>(*this, elements, number);
  case ElementType::I32:
    return addAll<int32_t>(*this, elements, number);
  case ElementType::I64:
    return addAll<int64_t>(*this, elements, number);
  case ElementType::U8:
  case ElementType::Bool:
    return addAll<uint8_t>(*this, elements, number);
  case ElementType::U16:
    return addAll<uint16_t>(*this, elements, number);
  case ElementType::U32:
    return addAll<uint32_t>(*this, elements, number);
  case ElementType::U64:
    return addAll<uint64_t>(*this, elements, number);
  default:
    return; // There is none of narrow types.
  }
}

void Summary::add(const Summary &other) {
  least = std::min(least, other.least);
  most = std::max(most, other.most);
  sum += other.sum;
  count += other.count;
  invalid += other.invalid;
  infinite += other.infinite;
}

std::string Summary::text(runtime::ElementType type) const {
  if (runtime::isNarrow(type))
    return "";
  if (count == invalid)
    return count == 0 ? "no elements" : "all NaN";
  std::string text = absl::StrFormat("min %.6g  mean %.6g  max %.6g", least, sum / (count - invalid), most);
  return invalid ? absl::StrCat(text, "  NaN in ", invalid, " elements") : text;
}

std::string tools::describeNonFinite(const std::vector<std::string> &names, const std::vector<Summary> &summaries) {
  std::string text;
  for (size_t i = 0; i < summaries.size(); ++i) {
    const Summary &summary = summaries[i];
    std::string found = summary.invalid ? absl::StrCat(summary.invalid, " NaN") : "";
    if (summary.infinite)
      absl::StrAppend(&found, found.empty() ? "" : " and ", summary.infinite, " infinite");
    if (!found.empty())
      absl::StrAppend(&text, text.empty() ? "" : "; ", "output '", names[i], "' contains ", found, " values, of ",
                      summary.count);
  }
  return text;
}

absl::StatusOr<std::vector<Summary>> tools::shareSummaries(runtime::ProgramRunner &runner,
                                                           const std::vector<Summary> &own) {
  size_t bytes = own.size() * sizeof(Summary);
  absl::StatusOr<std::vector<std::string>> all =
      runner.share(std::string(reinterpret_cast<const char *>(own.data()), bytes));
  if (!all.ok())
    return all.status();
  std::vector<Summary> result(own.size());
  for (const std::string &other : *all)
    for (size_t i = 0; i < result.size() && other.size() == bytes; ++i) {
      Summary part;
      std::memcpy(&part, other.data() + i * sizeof(Summary), sizeof(Summary));
      result[i].add(part);
    }
  return result;
}
