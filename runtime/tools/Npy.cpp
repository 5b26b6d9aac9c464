//===- Npy.cpp - NumPy's array format -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Npy.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace dovetail;
using namespace dovetail::tools;
using runtime::ElementType;

namespace {

struct Descriptor {
  const char *text;
  ElementType type;
};

/// NumPy has no type for bfloat16: arrays of it are two opaque bytes for each element. Arrays of 8-bit floats, and of
/// what has fewer bits, are one; NumPy's own name for a float of 8 bits is what ml_dtypes makes of float8_e5m2.
constexpr const char *opaqueBytes[] = {"|V1", "<V1", "<f1"};
constexpr Descriptor descriptors[] = {{"<f4", ElementType::F32},  {"<f8", ElementType::F64}, {"<f2", ElementType::F16},
                                      {"<V2", ElementType::BF16}, {"|i1", ElementType::I8},  {"<i2", ElementType::I16},
                                      {"<i4", ElementType::I32},  {"<i8", ElementType::I64}, {"|u1", ElementType::U8},
                                      {"<u2", ElementType::U16},  {"<u4", ElementType::U32}, {"<u8", ElementType::U64},
                                      {"|b1", ElementType::Bool}, {"|V2", ElementType::BF16}};

absl::Status malformed(absl::string_view what) {
  return absl::OutOfRangeError(absl::StrCat("not a .npy array: ", what));
}

/// Reads the Python literal in the header: a dictionary with three known keys.
class HeaderParser {
public:
  explicit HeaderParser(absl::string_view text) : text(text) {}

  bool parse() {
    if (!take('{'))
      return false;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return false;
      bool known = key == "descr"           ? string(descr)
                   : key == "fortran_order" ? boolean(fortranOrder)
                   : key == "shape"         ? tuple(shape)
                                            : false;
      if (!known)
        return false;
      if (!take(',') && !peek('}'))
        return false;
    }
    skip();
    return text.empty() && !descr.empty() && fortranOrder && shape;
  }

  std::string descr;
  std::optional<bool> fortranOrder;
  std::optional<std::vector<int64_t>> shape;

private:
  void skip() {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n'))
      text.remove_prefix(1);
  }
  bool peek(char c) {
    skip();
    return !text.empty() && text[0] == c;
  }
  bool take(char c) {
    if (!peek(c))
      return false;
    text.remove_prefix(1);
    return true;
  }
  bool string(std::string &result) {
    char quote = peek('"') ? '"' : '\'';
    if (!take(quote))
      return false;
    size_t end = text.find(quote);
    if (end == absl::string_view::npos)
      return false;
    result = std::string(text.substr(0, end));
    text.remove_prefix(end + 1);
    return true;
  }
  bool boolean(std::optional<bool> &result) {
    skip();
    for (bool value : {false, true}) {
      absl::string_view word = value ? "True" : "False";
      if (text.substr(0, word.size()) == word) {
        text.remove_prefix(word.size());
        result = value;
        return true;
      }
    }
    return false;
  }
  bool tuple(std::optional<std::vector<int64_t>> &result) {
    if (!take('('))
      return false;
    std::vector<int64_t> values;
    while (!take(')')) {
      skip();
      size_t digits = 0;
      while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
        ++digits;
      int64_t value;
      if (!absl::SimpleAtoi(text.substr(0, digits), &value))
        return false;
      values.push_back(value);
      text.remove_prefix(digits);
      if (!take(',') && !peek(')'))
        return false;
    }
    result = std::move(values);
    return true;
  }

  absl::string_view text;
};

/// Brings column-major elements into row-major order.
void transpose(NamedTensor &tensor) {
  runtime::FullTensor host = tensor.view();
  std::vector<std::byte> result(tensor.bytes.size());
  layout::Box box = layout::Box::ofShape(tensor.shape);
  runtime::MemoryView source = runtime::MemoryView::rowMajor(tensor.type, box, tensor.bytes.data());
  int64_t stride = 1;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    source.strides[dim] = stride;
    stride *= tensor.shape[dim];
  }
  runtime::copyBox(runtime::MemoryView::rowMajor(tensor.type, box, result.data()), source, box);
  tensor.bytes = std::move(result);
}

} // namespace

absl::StatusOr<int64_t> tools::npyHeaderBytes(absl::Span<const std::byte> bytes) {
  static constexpr char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
  if (bytes.size() < 10 || std::memcmp(bytes.data(), magic, sizeof(magic)) != 0)
    return malformed("the magic number is missing");
  int version = static_cast<int>(bytes[6]);
  if (version < 1 || version > 3)
    return malformed(absl::StrCat("unknown version ", version));
  size_t lengthBytes = version == 1 ? 2 : 4, length = 0;
  if (bytes.size() < 8 + lengthBytes)
    return malformed("the header is cut short");
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<size_t>(bytes[8 + i]) << (8 * i);
  return static_cast<int64_t>(8 + lengthBytes + length);
}

absl::StatusOr<NpyArray> tools::parseNpyHeader(absl::Span<const std::byte> bytes) {
  absl::StatusOr<int64_t> length = npyHeaderBytes(bytes);
  if (!length.ok())
    return length.status();
  if (*length > static_cast<int64_t>(bytes.size()))
    return malformed("the header is cut short");
  size_t begin = bytes[6] == std::byte{1} ? 10 : 12;
  HeaderParser header(
      absl::string_view(reinterpret_cast<const char *>(bytes.data()) + begin, static_cast<size_t>(*length) - begin));
  if (!header.parse())
    return malformed("the header cannot be understood");
  const Descriptor *found = nullptr;
  for (const Descriptor &descriptor : descriptors)
    if (header.descr == descriptor.text)
      found = &descriptor;
  bool isOpaque = std::find(std::begin(opaqueBytes), std::end(opaqueBytes), header.descr) != std::end(opaqueBytes);
  if (!found && !isOpaque)
    return absl::OutOfRangeError(
        absl::StrCat("elements of type '", header.descr, "' are not supported; convert them with astype"));
  NpyArray array{found ? found->type : ElementType::U8, *header.shape,
                 *header.fortranOrder && header.shape->size() > 1};
  array.isOpaque = isOpaque;
  array.bytes = runtime::elementSize(array.type);
  for (int64_t extent : array.shape) {
    if (extent != 0 && array.bytes > (int64_t(1) << 60) / extent)
      return malformed("its shape is impossible");
    array.bytes *= extent;
  }
  return array;
}

absl::Status NpyArray::checkSize(int64_t size) const {
  if (size != bytes)
    return malformed(absl::StrCat("there are ", size, " bytes of elements instead of ", bytes));
  return absl::OkStatus();
}

absl::StatusOr<NamedTensor> tools::decodeNpy(absl::Span<const std::byte> bytes) {
  absl::StatusOr<NpyArray> array = parseNpyHeader(bytes);
  if (!array.ok())
    return array.status();
  bytes.remove_prefix(static_cast<size_t>(*npyHeaderBytes(bytes)));
  if (absl::Status status = array->checkSize(static_cast<int64_t>(bytes.size())); !status.ok())
    return status;
  NamedTensor tensor;
  tensor.type = array->type;
  tensor.isOpaque = array->isOpaque;
  tensor.shape = array->shape;
  tensor.allocate();
  std::copy(bytes.begin(), bytes.end(), tensor.bytes.begin());
  if (array->isReversed)
    transpose(tensor);
  return tensor;
}

std::string tools::npyHeader(ElementType type, const std::vector<int64_t> &shape, size_t least) {
  const char *descr = runtime::isNarrow(type) ? opaqueBytes[0] : "";
  for (const Descriptor &descriptor : descriptors)
    if (descriptor.type == type && !*descr)
      descr = descriptor.text;
  std::string header = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                                    absl::StrJoin(shape, ", "), shape.size() == 1 ? "," : "", "), }");
  // The elements begin at a multiple of 64 bytes.
  size_t length = std::max((10 + header.size() + 1 + 63) / 64 * 64, least) - 10;
  header.resize(length - 1, ' ');
  header += '\n';
  std::string result("\x93NUMPY\x01\x00", 8);
  result += static_cast<char>(length & 0xff);
  result += static_cast<char>(length >> 8);
  return result + header;
}
