//===- ArtifactFormat.h - The container of compiled programs ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the layout of a `.dvt` file, which the compiler writes and the runtime maps: a header, a table of sections,
// and the sections. All numbers are little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_ARTIFACTFORMAT_H
#define DOVETAIL_RUNTIME_ARTIFACTFORMAT_H

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dovetail::runtime {

inline constexpr char artifactMagic[8] = {'D', 'O', 'V', 'E', 'T', 'A', 'I', 'L'};

/// Incremented whenever a file of the previous version would be misread.
inline constexpr uint32_t artifactVersion = 7;

/// Sections are checked in parts of so many bytes, of which the last may have fewer, so that threads can share them.
inline constexpr size_t checkedPartBytes = size_t(4) << 20;

/// Sections begin at multiples of this many bytes, so that each can be mapped alone.
inline constexpr uint64_t sectionAlignment = 4096;

/// Pieces of a section (each weight is one) begin at multiples of this many bytes.
inline constexpr uint64_t pieceAlignment = 64;

/// What a section holds.
enum class SectionKind : uint32_t {
  Plan = 1,    ///< FlatBuffer of `schema/plan.fbs`.
  Code = 2,    ///< ELF shared object with the kernels; absent when there are none.
  Weights = 3, ///< Constants, row-major; absent when there are none.
  Ptx = 4,     ///< PTX text with the kernels, for `arch` and newer.
  Cubin = 5,   ///< Machine code of the kernels for `arch`.
  Packed = 6,  ///< Weights as library calls want them (`PackedImage`); absent when they are packed at start-up.
};

/// The first bytes of an artifact; the table of sections follows.
struct ArtifactHeader {
  char magic[8];
  uint32_t version;
  uint32_t sectionCount;
  uint64_t fileSize;
  uint64_t checksum; ///< XXH3-64 of the header, with this field zero, and the section table.
};
static_assert(sizeof(ArtifactHeader) == 32);

/// An entry of the table of sections.
struct SectionEntry {
  SectionKind kind;
  uint32_t arch; ///< Ptx, Cubin: the architecture, such as 90 for sm_90, one section for each; others: 0.
  uint64_t
      offset;    ///< From the beginning of the file: the first multiple of `sectionAlignment` after what comes before.
  uint64_t size; ///< In bytes.
  uint64_t checksum; ///< XXH3-64 of the XXH3-64 of each part of `checkedPartBytes`.
};
static_assert(sizeof(SectionEntry) == 32);

/// What goes into one section. The bytes are not owned.
struct Section {
  SectionKind kind;
  std::vector<absl::Span<const std::byte>> pieces;
  uint32_t arch = 0; ///< See `SectionEntry`.
};

/// The offsets at which pieces of the given sizes lie in their section: each follows the one before at the next
/// multiple of `pieceAlignment`.
std::vector<uint64_t> pieceOffsets(absl::Span<const uint64_t> sizes);

/// What `errno` says about a file, as an error that stands for a file whatever is the matter with it: NOT_FOUND, or
/// PERMISSION_DENIED.
absl::Status fileError(int error, absl::string_view what);

/// Whether a file that is renamed to `path` would replace nothing but a file. Errors: ALREADY_EXISTS for devices,
/// folders and the like.
absl::Status checkReplaceable(const std::string &path);

/// Writes an artifact to a temporary file beside `path` and renames it, so that `path` is never half written.
absl::Status writeArtifact(const std::string &path, absl::Span<const Section> sections);

/// Returns the bytes that `writeArtifact` would write.
absl::StatusOr<std::vector<std::byte>> serializeArtifact(absl::Span<const Section> sections);

/// A section with code: all images of an artifact hold the same kernels.
struct CodeImage {
  SectionKind kind;
  uint32_t arch;
  absl::Span<const std::byte> bytes;
};

/// The sections of an artifact in memory; they point into the bytes that were parsed.
struct ArtifactSections {
  uint64_t checksum = 0; ///< Of the header, and so of all sections.
  absl::Span<const std::byte> plan;
  absl::Span<const std::byte> weights; ///< Empty when absent.
  absl::Span<const std::byte> packed;  ///< Empty when absent.
  std::vector<CodeImage> code;         ///< Sections of kinds Code, Ptx and Cubin, in the order of the file.
};

/// Checks header, bounds and checksums. `unneeded` is told of weights that have been checked and are there packed, too,
/// so that nobody is likely to read them soon. Up to `threads` threads check. Errors: FAILED_PRECONDITION for what is
/// not an artifact or has another version, DATA_LOSS for a damaged one.
absl::StatusOr<ArtifactSections> parseArtifact(
    absl::Span<const std::byte> bytes,
    absl::FunctionRef<void(absl::Span<const std::byte>)> unneeded = [](absl::Span<const std::byte>) {},
    int threads = 1);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_ARTIFACTFORMAT_H
