//===- ArtifactFormat.h - The container of compiled programs ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the layout of a `.dvt` file, which the compiler writes and the runtime maps: a header, a table of sections,
// checksums of their parts, and the sections. All numbers are little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_ARTIFACTFORMAT_H
#define DOVETAIL_RUNTIME_ARTIFACTFORMAT_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dovetail::runtime {

inline constexpr char artifactMagic[8] = {'D', 'O', 'V', 'E', 'T', 'A', 'I', 'L'};

/// The format of artifacts that this version writes. docs/formats.md says what is part of it and when it is raised.
inline constexpr uint32_t artifactFormat = 9;
/// The oldest format that this version reads: the one before its own, from 9 on, the first that says who can read it.
inline constexpr uint32_t oldestReadFormat = 9;
static_assert(oldestReadFormat < artifactFormat || artifactFormat == 9);
/// Artifacts say that runtimes of this format and newer can read them.
inline constexpr uint32_t oldestReader = 9;

/// Sections are checked in parts of so many bytes, of which the last may have fewer, so that threads can share them,
/// and who needs a part of the weights reads no others.
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

/// The first bytes of an artifact. The table of sections follows, and for each section, in this order, the XXH3-64 of
/// each of its parts, 8 bytes each. The fields up to `oldestReader` are the same in all formats from 9 on.
struct ArtifactHeader {
  char magic[8];
  uint32_t format;       ///< `artifactFormat` of the version that wrote the artifact.
  uint32_t oldestReader; ///< At most `format`. Runtimes of this format and newer can read the artifact.
  uint64_t fileSize;
  uint64_t checksum; ///< XXH3-64 of the header, with this field zero, the table and the checksums of parts.
  uint64_t sectionCount;
};
static_assert(sizeof(ArtifactHeader) == 40);

/// An entry of the table of sections.
struct SectionEntry {
  SectionKind kind;
  uint32_t arch; ///< Ptx, Cubin: the number of the architecture (`archNumber`), one section for each; others: 0.
  uint64_t
      offset;    ///< From the beginning of the file: the first multiple of `sectionAlignment` after what comes before.
  uint64_t size; ///< In bytes.
};
static_assert(sizeof(SectionEntry) == 24);

/// What goes into one section. The bytes are not owned.
struct Section {
  SectionKind kind;
  std::vector<absl::Span<const std::byte>> pieces;
  std::string arch = {}; ///< Ptx, Cubin: the architecture, such as `sm_90`; others: empty.
};

/// The number that artifacts have for an architecture: 90 for `sm_90`, 0 for an empty name. Formats up to this one have
/// none for others.
inline std::optional<uint32_t> archNumber(absl::string_view name) {
  uint32_t number = 0;
  if (!name.empty() && (!absl::ConsumePrefix(&name, "sm_") || !absl::SimpleAtoi(name, &number) || number == 0))
    return std::nullopt;
  return number;
}
/// The name of that.
inline std::string archName(uint32_t number) { return number == 0 ? "" : absl::StrCat("sm_", number); }

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
  std::string arch; ///< See `Section`.
  absl::Span<const std::byte> bytes;
};

/// A section of an artifact in memory, and what its parts are to be. Points into the artifact. Thread-safe.
class CheckedSection {
public:
  CheckedSection() = default; ///< An absent one, without bytes.
  CheckedSection(SectionKind kind, absl::Span<const std::byte> bytes, absl::Span<const std::byte> sums);

  absl::Span<const std::byte> getBytes() const { return bytes; }
  /// Checks the parts that have any of `range`, which lies in the section, but for those that were found to be right
  /// before. Up to `threads` threads do so. Errors: DATA_LOSS.
  absl::Status check(absl::Span<const std::byte> range, int threads = 1) const;
  absl::Status checkAll(int threads) const { return check(bytes, threads); }

private:
  SectionKind kind = SectionKind::Plan;
  absl::Span<const std::byte> bytes, sums;
  std::unique_ptr<std::atomic<bool>[]> isRight; ///< Of each part: whether it is known to be.
};

/// The sections of an artifact in memory; they point into the bytes that were parsed.
struct ArtifactSections {
  uint64_t checksum = 0; ///< Of the header, and so of all sections.
  absl::Span<const std::byte> plan;
  CheckedSection weights;      ///< Empty when absent.
  CheckedSection packed;       ///< Empty when absent.
  std::vector<CodeImage> code; ///< Sections of kinds Code, Ptx and Cubin, in the order of the file.
};

/// The header of an artifact of a format that this version reads. Nothing else of the file is looked at before the
/// format. Errors: FAILED_PRECONDITION for other files and other formats, DATA_LOSS for a file that was cut short, or
/// whose header makes no sense.
absl::StatusOr<ArtifactHeader> readHeader(absl::Span<const std::byte> bytes);

/// Checks header and bounds, and checksums of all sections but `weights` and `packed`, which are left to who reads
/// them. Up to `threads` threads check. Sections of unknown kinds are left out if the artifact has a newer format.
/// Errors: those of `readHeader`, and DATA_LOSS for a damaged artifact.
absl::StatusOr<ArtifactSections> parseArtifact(absl::Span<const std::byte> bytes, int threads = 1);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_ARTIFACTFORMAT_H
