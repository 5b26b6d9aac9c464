//===- Code.cpp - Kernels on a GPU ----------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include <algorithm>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

/// The least compute capability that an image is for.
int getCapability(const CodeImage &image) { return static_cast<int>(archNumber(image.arch).value_or(0)); }

/// What an image can be loaded on: machine code on its architecture and later ones of the same generation, PTX on its
/// architecture and everything later.
bool suits(const CodeImage &image, int computeCapability) {
  int arch = getCapability(image);
  if (image.kind == SectionKind::Cubin)
    return arch / 10 == computeCapability / 10 && arch <= computeCapability;
  return image.kind == SectionKind::Ptx && arch <= computeCapability;
}

absl::StatusOr<CUmodule> loadImage(const Context &context, const CodeImage &image) {
  // PTX is a string for the driver. Machine code is copied, too, as it has to be aligned.
  std::string text(reinterpret_cast<const char *>(image.bytes.data()), image.bytes.size());
  std::string log(16 << 10, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  CUmodule module = nullptr;
  CUresult result = context.api.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
  if (result == CUDA_SUCCESS)
    return module;
  absl::Status status = context.check(result, "cuModuleLoadDataEx");
  absl::string_view said = absl::StripAsciiWhitespace(log.c_str());
  return absl::FailedPreconditionError(absl::StrCat(image.kind == SectionKind::Ptx ? "PTX for " : "machine code for ",
                                                    image.arch, ": ", status.message(),
                                                    said.empty() ? "" : "; its compiler says: ", said));
}

class Launch : public DeviceWork {
public:
  Launch(std::shared_ptr<Context> context, CUfunction function, unsigned dynamicShared, LaunchDescription description)
      : context(std::move(context)), function(function), dynamicShared(dynamicShared),
        description(std::move(description)) {
    for (void *&pointer : this->description.pointers)
      parameters.push_back(&pointer);
    for (int64_t &number : this->description.numbers)
      parameters.push_back(&number);
  }

  absl::Status issue(DeviceStream &stream) override {
    DeviceScope scope(*context);
    CUresult result =
        context->api.cuLaunchKernel(function, static_cast<unsigned>(description.blocks), 1, 1, description.threads, 1,
                                    1, dynamicShared, handleOf(stream), parameters.data(), nullptr);
    if (result == CUDA_SUCCESS && context->synchronous)
      return annotate(stream.synchronize(), description.name);
    return annotate(context->check(result, "cuLaunchKernel"), description.name);
  }

private:
  std::shared_ptr<Context> context;
  CUfunction function;
  unsigned dynamicShared;
  LaunchDescription description;
  std::vector<void *> parameters; ///< Addresses of the parameters, for the driver.
};

class Code : public DeviceCode {
public:
  Code(std::shared_ptr<Context> context, CUmodule module) : context(std::move(context)), module(module) {}
  ~Code() override {
    DeviceScope scope(*context);
    context->api.cuModuleUnload(module);
  }

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareLaunch(const std::string &symbol,
                                                            LaunchDescription description) override;

private:
  absl::StatusOr<int64_t> attribute(CUfunction function, CUfunction_attribute attribute) const {
    int value = 0;
    if (absl::Status status =
            context->check(context->api.cuFuncGetAttribute(&value, attribute, function), "cuFuncGetAttribute");
        !status.ok())
      return status;
    return value;
  }

  std::shared_ptr<Context> context;
  CUmodule module;
};

} // namespace

absl::StatusOr<CUmodule> dovetail::runtime::cuda::loadImages(const Context &context,
                                                             absl::Span<const CodeImage> images) {
  std::vector<CodeImage> candidates;
  std::vector<std::string> offered;
  for (const CodeImage &image : images) {
    if (image.kind != SectionKind::Ptx && image.kind != SectionKind::Cubin)
      continue;
    offered.push_back(absl::StrCat(image.kind == SectionKind::Ptx ? "PTX for " : "", image.arch));
    if (suits(image, context.computeCapability))
      candidates.push_back(image);
  }
  // Machine code starts sooner than PTX; a newer architecture uses more of the device.
  std::sort(candidates.begin(), candidates.end(), [](const CodeImage &a, const CodeImage &b) {
    bool aNative = a.kind == SectionKind::Cubin, bNative = b.kind == SectionKind::Cubin;
    return aNative != bNative ? aNative : getCapability(a) > getCapability(b);
  });
  if (candidates.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("the program has kernels for ", offered.empty() ? "no GPU" : absl::StrJoin(offered, ", "),
                     ", but ", context.label(), " is ", archName(context.computeCapability),
                     "; compile the model with --arch ", archName(context.computeCapability)));
  DeviceScope scope(context);
  std::vector<std::string> problems;
  for (const CodeImage &image : candidates) {
    absl::StatusOr<CUmodule> module = loadImage(context, image);
    if (module.ok())
      return module;
    problems.push_back(std::string(module.status().message()));
  }
  return absl::FailedPreconditionError(absl::StrCat("the kernels cannot be loaded on ", context.label(), " (",
                                                    archName(context.computeCapability),
                                                    "): ", absl::StrJoin(problems, "; ")));
}

absl::StatusOr<std::unique_ptr<DeviceWork>> Code::prepareLaunch(const std::string &symbol,
                                                                LaunchDescription description) {
  DeviceScope scope(*context);
  CUfunction function = nullptr;
  CUresult found = context->api.cuModuleGetFunction(&function, module, symbol.c_str());
  if (found == CUDA_ERROR_NOT_FOUND)
    return absl::DataLossError(absl::StrCat(description.name, ": the code has no kernel ", symbol));
  if (absl::Status status = context->check(found, "cuModuleGetFunction"); !status.ok())
    return annotate(status, description.name);

  absl::StatusOr<int64_t> most = attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                          fixed = attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  for (const absl::StatusOr<int64_t> *value : {&most, &fixed})
    if (!value->ok())
      return annotate(value->status(), description.name);
  if (description.threads > *most)
    return absl::FailedPreconditionError(absl::StrCat(description.name, ": kernel ", symbol, " needs blocks of ",
                                                      description.threads, " threads, but ", context->label(),
                                                      " has registers for ", *most, " only"));
  // What the kernel declares itself is not asked for again.
  int64_t dynamic = std::max<int64_t>(0, description.sharedBytes - *fixed);
  absl::StatusOr<int> limit = context->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (!limit.ok())
    return limit.status();
  if (*fixed + dynamic > *limit)
    return absl::FailedPreconditionError(absl::StrCat(description.name, ": kernel ", symbol, " needs ",
                                                      *fixed + dynamic, " bytes of shared memory, but ",
                                                      context->label(), " has ", *limit));
  if (dynamic > 0)
    if (absl::Status status =
            context->check(context->api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                           static_cast<int>(dynamic)),
                           "cuFuncSetAttribute");
        !status.ok())
      return annotate(status, description.name);
  return std::make_unique<Launch>(context, function, static_cast<unsigned>(dynamic), std::move(description));
}

absl::StatusOr<std::unique_ptr<DeviceCode>> dovetail::runtime::cuda::createCode(std::shared_ptr<Context> context,
                                                                                absl::Span<const CodeImage> images) {
  absl::StatusOr<CUmodule> module = loadImages(*context, images);
  if (!module.ok())
    return module.status();
  return std::make_unique<Code>(std::move(context), *module);
}
