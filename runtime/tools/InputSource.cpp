//===- InputSource.cpp - Inputs that are read in parts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/InputSource.h"

#include "Npy.h"
#include "Npz.h"
#include "PlacedFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::tools;
using layout::Box;
using runtime::ElementType;

namespace {

/// Elements in a file: in row-major order, or with the dimensions the other way round.
class FileSource : public InputSource {
public:
  FileSource(std::shared_ptr<PlacedFile> file, int64_t begin, ElementType type, std::vector<int64_t> shape,
             bool isReversed, bool opaque)
      : InputSource(type, std::move(shape)), file(std::move(file)), begin(begin), isReversed(isReversed) {
    isOpaque = opaque;
  }

  absl::Status read(const Box &box, std::byte *target) const override {
    if (box.empty())
      return absl::OkStatus();
    if (!isReversed || box.rank() < 2)
      return readRuns(box, shape(), target);
    // As it is in the file, then the other way round.
    Box turned = box;
    std::vector<int64_t> extents = shape();
    std::reverse(extents.begin(), extents.end());
    for (int dim = 0; dim < box.rank(); ++dim)
      turned[dim] = box[box.rank() - 1 - dim];
    std::vector<std::byte> bytes(box.volume() * runtime::elementSize(type()));
    if (absl::Status status = readRuns(turned, extents, bytes.data()); !status.ok())
      return status;
    runtime::MemoryView source = runtime::MemoryView::rowMajor(type(), box, bytes.data());
    int64_t stride = 1;
    for (int dim = 0; dim < box.rank(); ++dim) {
      source.strides[dim] = stride;
      stride *= box[dim].size();
    }
    runtime::copyBox(runtime::MemoryView::rowMajor(type(), box, target), source, box);
    return absl::OkStatus();
  }

private:
  /// Reads a box of a row-major array.
  absl::Status readRuns(const Box &box, const std::vector<int64_t> &extents, std::byte *target) const {
    int64_t elementBytes = runtime::elementSize(type());
    return forEachRun(box, extents, [&](int64_t offset, int64_t at, int64_t count) {
      return file->read(begin + offset * elementBytes, target + at * elementBytes, count * elementBytes);
    });
  }

  std::shared_ptr<PlacedFile> file;
  int64_t begin;
  bool isReversed;
};

class RandomSource : public InputSource {
public:
  RandomSource(ElementType type, std::vector<int64_t> shape, uint64_t seed, int64_t limit)
      : InputSource(type, std::move(shape)), seed(seed), limit(limit) {}

  absl::Status read(const Box &box, std::byte *target) const override {
    return forEachRun(box, shape(), [&](int64_t offset, int64_t at, int64_t count) {
      fillRandom(type(), seed, limit, offset, count, target + at * runtime::elementSize(type()));
      return absl::OkStatus();
    });
  }

private:
  uint64_t seed;
  int64_t limit;
};

class HeldTensor : public InputSource {
public:
  explicit HeldTensor(NamedTensor held) : InputSource(held.type, held.shape), tensor(std::move(held)) {
    isOpaque = tensor.isOpaque;
  }

  absl::Status read(const Box &box, std::byte *target) const override {
    int64_t elementBytes = runtime::elementSize(type());
    return forEachRun(box, shape(), [&](int64_t offset, int64_t at, int64_t count) {
      std::memcpy(target + at * elementBytes, tensor.bytes.data() + offset * elementBytes, count * elementBytes);
      return absl::OkStatus();
    });
  }

private:
  NamedTensor tensor;
};

} // namespace

absl::Status tools::forEachRun(const Box &box, const std::vector<int64_t> &extents,
                               absl::FunctionRef<absl::Status(int64_t offset, int64_t at, int64_t count)> body) {
  if (box.empty())
    return absl::OkStatus();
  int rank = box.rank();
  // The last dimensions that are whole lie in one piece, with those of the one before them.
  int first = rank;
  int64_t count = 1;
  while (first > 0) {
    --first;
    count *= box[first].size();
    if (box[first].size() != extents[first])
      break;
  }
  std::vector<int64_t> strides(rank, 1), index(first);
  for (int dim = rank - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * extents[dim + 1];
  int64_t base = 0;
  for (int dim = 0; dim < rank; ++dim)
    base += box[dim].lo * strides[dim];
  for (int64_t at = 0;; at += count) {
    int64_t offset = base;
    for (int dim = 0; dim < first; ++dim)
      offset += index[dim] * strides[dim];
    if (absl::Status status = body(offset, at, count); !status.ok())
      return status;
    int dim = first - 1;
    while (dim >= 0 && ++index[dim] == box[dim].size())
      index[dim--] = 0;
    if (dim < 0)
      return absl::OkStatus();
  }
}

/// An array of NumPy's that `bytes` bytes of a file are, from `begin` on. Errors: OUT_OF_RANGE, with what is wrong.
static absl::StatusOr<std::unique_ptr<InputSource>> openArray(std::shared_ptr<PlacedFile> file, int64_t begin,
                                                              int64_t bytes) {
  // The header says how long it is.
  std::vector<std::byte> header(std::min(bytes, npyPrologueBytes));
  if (absl::Status status = file->read(begin, header.data(), header.size()); !status.ok())
    return status;
  absl::StatusOr<int64_t> length = npyHeaderBytes(header);
  if (!length.ok())
    return length.status();
  header.resize(std::min(bytes, *length));
  if (absl::Status status = file->read(begin, header.data(), header.size()); !status.ok())
    return status;
  absl::StatusOr<NpyArray> array = parseNpyHeader(header);
  if (array.ok())
    if (absl::Status status = array->checkSize(bytes - *length); !status.ok())
      array = status;
  if (!array.ok())
    return array.status();
  return std::make_unique<FileSource>(std::move(file), begin + *length, array->type, array->shape, array->isReversed,
                                      array->isOpaque);
}

absl::StatusOr<std::unique_ptr<InputSource>> tools::openNpy(const std::string &path) {
  absl::StatusOr<std::shared_ptr<PlacedFile>> file = PlacedFile::open(path);
  if (!file.ok())
    return file.status();
  int64_t size = (*file)->size;
  absl::StatusOr<std::unique_ptr<InputSource>> array = openArray(*std::move(file), 0, size);
  return array.ok() ? std::move(array) : ofFile(path, array.status());
}

absl::StatusOr<std::vector<ArchivedArray>> tools::openNpz(const std::string &path, const std::string &only) {
  absl::StatusOr<std::shared_ptr<PlacedFile>> file = PlacedFile::open(path);
  if (!file.ok())
    return file.status();
  absl::StatusOr<std::vector<NpzMember>> members =
      listNpz((*file)->size,
              [&](int64_t offset, std::byte *target, int64_t bytes) { return (*file)->read(offset, target, bytes); });
  if (!members.ok())
    return ofFile(path, members.status());
  std::vector<ArchivedArray> arrays;
  for (NpzMember &member : *members) {
    if (!only.empty() && members->size() > 1 && member.name != only)
      continue;
    arrays.push_back({std::move(member.name), nullptr});
    if (!member.isStored())
      continue;
    absl::StatusOr<std::unique_ptr<InputSource>> array = openArray(*file, member.begin, member.bytes);
    if (!array.ok())
      return ofFile(absl::StrCat(path, ":", arrays.back().name, ".npy"), array.status());
    arrays.back().source = *std::move(array);
  }
  return arrays;
}

absl::StatusOr<std::unique_ptr<InputSource>> tools::openRaw(const std::string &path, ElementType type,
                                                            std::vector<int64_t> shape) {
  absl::StatusOr<std::shared_ptr<PlacedFile>> file = PlacedFile::open(path);
  if (!file.ok())
    return file.status();
  int64_t bytes = Box::ofShape(shape).volume() * runtime::elementSize(type);
  if ((*file)->size != bytes)
    return absl::OutOfRangeError(
        absl::StrCat("'", path, "' has ", (*file)->size, " bytes of elements instead of ", bytes));
  return std::make_unique<FileSource>(*std::move(file), 0, type, std::move(shape), /*isReversed=*/false,
                                      /*opaque=*/false);
}

std::unique_ptr<InputSource> tools::makeRandom(ElementType type, std::vector<int64_t> shape, uint64_t seed,
                                               int64_t limit) {
  return std::make_unique<RandomSource>(type, std::move(shape), seed, limit);
}

std::unique_ptr<InputSource> tools::holdTensor(NamedTensor tensor) {
  return std::make_unique<HeldTensor>(std::move(tensor));
}
