//===- Program.cpp - Loaded artifacts -------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Program.h"

#include "../Threads/Cores.h"
#include "CodeObject.h"
#include "PackedWeights.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/HostFeatures.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dovetail::runtime;

/// More than these the memory does not feed.
static constexpr int maxCheckingThreads = 4;

/// The artifact's bytes, mapped from a file or copied, and what was loaded from them.
struct Program::Storage {
  std::byte *data = nullptr;
  size_t size = 0;
  bool isFile = false; ///< Whether it is mapped from a file.
  std::unique_ptr<CodeObject> code;
  std::map<std::string, DovetailKernel> kernels;

  absl::Status loadKernels(const Program &program);
  /// Gives pages of the file back, which are read again when need be.
  void release(absl::Span<const std::byte> bytes) const;

  ~Storage() {
    code.reset();
    if (data)
      ::munmap(data, size);
  }
};

namespace {

absl::Status annotate(const absl::Status &status, const std::string &path) {
  return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
}

/// Whether what is no artifact is an ONNX model, as its name or its first two fields say: the version of the format, a
/// small number, and another field of ModelProto.
bool isModel(absl::string_view path, absl::string_view bytes) {
  constexpr absl::string_view fields("\x12\x1a\x22\x28\x32\x3a\x42");
  return absl::EndsWith(path, ".onnx") || absl::EndsWith(path, ".onnxtxt") ||
         (bytes.size() > 2 && bytes[0] == 8 && bytes[1] > 0 && bytes[1] < 32 && absl::StrContains(fields, bytes[2]));
}

/// Collects the symbols of the kernel steps.
std::vector<std::string> kernelSymbols(const Plan &plan) {
  std::vector<std::string> symbols;
  for (const std::vector<StepInfo> *list : {&plan.prologue, &plan.steps})
    for (const StepInfo &step : *list)
      if (const auto *call = std::get_if<KernelCall>(&step.action))
        symbols.push_back(call->symbol);
  return symbols;
}

absl::Status checkHost(const Plan &plan) {
  absl::StatusOr<CpuLevel> limit = maxCpuLevel();
  if (!limit.ok())
    return limit.status();
  std::vector<std::string> missing;
  for (const std::string &feature : plan.cpuFeatures)
    if (!hostHasFeature(feature))
      missing.push_back(feature);
  // The highest level that no missing feature is a part of, for programs that run on several machines.
  CpuLevel level = CpuLevel::V3;
  while (level > CpuLevel::V1 && std::any_of(missing.begin(), missing.end(), [&](const std::string &feature) {
           return levelHasFeature(level, feature);
         }))
    level = static_cast<CpuLevel>(static_cast<int>(level) - 1);
  if (!missing.empty())
    return absl::FailedPreconditionError(absl::StrCat(
        "compiled for a CPU with features that this machine lacks",
        *limit == CpuLevel::Unlimited ? "" : absl::StrCat(" or DOVETAIL_MAX_CPU=", cpuLevelName(*limit), " excludes"),
        " (", absl::StrJoin(missing, ", "),
        "); compile the model again with --cpu native on this machine, or with --cpu ", cpuLevelName(level)));
  return absl::OkStatus();
}

/// Steps go through all of a loop.
absl::Status checkExtents(const Plan &plan) {
  std::set<std::string> names;
  for (const std::vector<StepInfo> *list : {&plan.prologue, &plan.steps})
    for (const StepInfo &step : *list)
      std::visit(
          [&](const auto &action) {
            if constexpr (requires { action.loops; })
              for (const LoopInfo &loop : action.loops)
                if (loop.count >= 0)
                  names.insert(absl::StrCat("'", plan.counts[loop.count].name, "' (at most ",
                                            plan.counts[loop.count].bound, ")"));
          },
          step.action);
  if (!names.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("has steps with extents that are known at run time only, which this runtime does not support: ",
                     absl::StrJoin(names, ", "), "; the artifact was made by a newer compiler ('", plan.producer,
                     "'): use its runtime"));
  return absl::OkStatus();
}

/// Devices are opened by sessions; here is only looked at whether there could be one.
absl::Status checkTarget(const Plan &plan) {
  bool isName = !plan.target.empty() && std::all_of(plan.target.begin(), plan.target.end(),
                                                    [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  if (!isName)
    return absl::DataLossError(absl::StrCat("damaged plan: '", plan.target, "' is not the name of a target"));
  return absl::OkStatus();
}

} // namespace

absl::Status Program::Storage::loadKernels(const Program &program) {
  if (absl::Status status = checkHost(program.plan); !status.ok())
    return status;
  for (const CodeImage &image : program.code) {
    if (image.kind != SectionKind::Code)
      return absl::DataLossError("damaged artifact: a program for the CPU has code for a device");
    absl::StatusOr<std::unique_ptr<CodeObject>> object = CodeObject::load(image.bytes);
    if (!object.ok())
      return object.status();
    code = *std::move(object);
  }
  for (const std::string &symbol : kernelSymbols(program.plan)) {
    void *address = code ? code->lookup(symbol.c_str()) : nullptr;
    if (!address)
      return absl::DataLossError(absl::StrCat("damaged plan: there is no kernel '", symbol, "' in the code section"));
    kernels[symbol] = reinterpret_cast<DovetailKernel>(address);
  }
  return absl::OkStatus();
}

void Program::Storage::release(absl::Span<const std::byte> bytes) const {
  // The system maps that many bytes around one that is read, those of smaller pieces with others.
  constexpr uint64_t window = 64 << 10;
  if (!isFile || bytes.size() < window)
    return;
  uint64_t begin = bytes.data() - data, end = begin + bytes.size();
  begin = begin / window * window;
  end = std::min<uint64_t>((end + window - 1) / window * window, size);
  // What else lies there is read again, too.
  ::madvise(data + begin, end - begin, MADV_DONTNEED);
}

Program::Program() : packed(std::make_unique<PackedWeights>()) {}
Program::~Program() = default;

absl::StatusOr<std::shared_ptr<const Program>> Program::load(const std::string &path, ProgramOptions options) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fileError(errno, absl::StrCat("cannot open '", path, "'"));
  struct stat info;
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    return absl::NotFoundError(absl::StrCat("'", path, "' is not a file"));
  }
  auto storage = std::make_unique<Storage>();
  if (info.st_size > 0) {
    void *data = ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      absl::Status status = absl::ErrnoToStatus(errno, absl::StrCat("cannot map '", path, "'"));
      ::close(file);
      return status;
    }
    storage->data = static_cast<std::byte *>(data);
    storage->size = info.st_size;
    storage->isFile = true;
  }
  ::close(file);
  absl::string_view bytes(reinterpret_cast<const char *>(storage->data), storage->size);
  if (!absl::StartsWith(bytes, absl::string_view(artifactMagic, sizeof(artifactMagic))) && isModel(path, bytes))
    return absl::InvalidArgumentError(absl::StrCat("'", path,
                                                   "' is not a Dovetail artifact but an ONNX model; compile it "
                                                   "first: `dovetail compile ",
                                                   path, "`"));
  auto program = create(std::move(storage), options);
  if (!program.ok())
    return annotate(program.status(), path);
  return program;
}

absl::StatusOr<std::shared_ptr<const Program>> Program::load(absl::Span<const std::byte> bytes,
                                                             ProgramOptions options) {
  auto storage = std::make_unique<Storage>();
  if (!bytes.empty()) {
    // Pages are aligned as in a mapped file, which spans of callers need not be.
    void *data = ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      return absl::ErrnoToStatus(errno, "cannot allocate memory for the artifact");
    std::memcpy(data, bytes.data(), bytes.size());
    storage->data = static_cast<std::byte *>(data);
    storage->size = bytes.size();
  }
  return create(std::move(storage), options);
}

absl::StatusOr<std::shared_ptr<const Program>> Program::create(std::unique_ptr<Storage> storage,
                                                               ProgramOptions options) {
  int threads = std::min(countCores(), maxCheckingThreads);
  absl::StatusOr<ArtifactSections> sections = parseArtifact({storage->data, storage->size}, threads);
  if (!sections.ok())
    return sections.status();
  if (options.checkWeights) {
    if (absl::Status status = sections->weights.checkAll(threads); !status.ok())
      return status;
    // What is there packed, too, nobody is likely to read soon.
    if (!sections->packed.getBytes().empty())
      storage->release(sections->weights.getBytes());
    if (absl::Status status = sections->packed.checkAll(threads); !status.ok())
      return status;
  }
  absl::StatusOr<Plan> plan = decodePlan(sections->plan, sections->weights.getBytes().size());
  if (!plan.ok())
    return plan.status();
  if (absl::Status status = checkExtents(*plan); !status.ok())
    return status;

  std::shared_ptr<Program> program(new Program());
  program->weights = std::move(sections->weights);
  program->packedImage = std::move(sections->packed);
  if (const CheckedSection &section = program->packedImage; !section.getBytes().empty()) {
    auto check = [&section](absl::Span<const std::byte> bytes) { return section.check(bytes); };
    absl::StatusOr<PackedImage> image = PackedImage::parse(section.getBytes(), check);
    if (!image.ok())
      return image.status();
    program->packed->setImage(*std::move(image), check);
  }
  program->plan = *std::move(plan);
  program->checksum = sections->checksum;
  program->code = std::move(sections->code);
  if (options.executable) {
    if (absl::Status status = program->plan.isForDevice() ? checkTarget(program->plan) : storage->loadKernels(*program);
        !status.ok())
      return status;
    program->executable = true;
  }
  program->storage = std::move(storage);
  return program;
}

absl::Span<const std::byte> Program::getArtifact() const { return {storage->data, storage->size}; }

absl::Status Program::checkWeights(const BufferInfo &buffer, const layout::Box &box) const {
  if (box.empty())
    return absl::OkStatus();
  absl::Span<const std::byte> bytes = getWeights().subspan(buffer.dataOffset, buffer.dataSize);
  std::vector<uint64_t> strides(box.rank());
  uint64_t stride = elementSize(buffer.type);
  for (int dim = box.rank() - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    stride *= buffer.shape[dim];
  }
  // Along dimensions whose steps are shorter than a part, each part from the first element to the last has some.
  int numOuter = 0;
  while (numOuter < box.rank() && strides[numOuter] >= checkedPartBytes)
    ++numOuter;
  uint64_t begin = 0, last = 0;
  for (int dim = 0; dim < box.rank(); ++dim) {
    begin += box[dim].lo * strides[dim];
    if (dim >= numOuter)
      last += (box[dim].size() - 1) * strides[dim];
  }
  uint64_t length = last + elementSize(buffer.type);
  std::vector<int64_t> index(numOuter, 0);
  while (true) {
    uint64_t offset = begin;
    for (int dim = 0; dim < numOuter; ++dim)
      offset += index[dim] * strides[dim];
    if (absl::Status status = weights.check(bytes.subspan(offset, length)); !status.ok())
      return status;
    int dim = numOuter - 1;
    while (dim >= 0 && ++index[dim] == box[dim].size())
      index[dim--] = 0;
    if (dim < 0)
      return absl::OkStatus();
  }
}

void Program::releaseWeights(uint64_t offset, uint64_t size) const {
  storage->release(getWeights().subspan(offset, size));
}

size_t Program::getCodeSize() const {
  size_t size = 0;
  for (const CodeImage &image : code)
    size += image.bytes.size();
  return size;
}

DovetailKernel Program::getKernel(const std::string &symbol) const { return storage->kernels.at(symbol); }
