//===- CodeObject.cpp - Kernels of a program ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeObject.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace dovetail::runtime;

/// Makes the mathematics that generated code calls visible to it, even when this library was itself loaded by a plug-in
/// mechanism that hides what it depends on.
static void exposeMathLibraries() {
  static const bool done = [] {
    for (const char *name : {"libm.so.6", "libmvec.so.1"})
      ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    return true;
  }();
  (void)done;
}

absl::StatusOr<std::unique_ptr<CodeObject>> CodeObject::load(absl::Span<const std::byte> elf) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header))
    return absl::DataLossError("the code section is cut short");
  std::memcpy(&header, elf.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN)
    return absl::DataLossError("the code section is not a shared object");
  if (header.e_machine != EM_X86_64)
    return absl::FailedPreconditionError("the kernels were generated for another processor architecture");

  exposeMathLibraries();
  int file = ::memfd_create("dovetail-kernels", MFD_CLOEXEC);
  if (file < 0)
    return absl::ErrnoToStatus(errno, "cannot create memory for the kernels");
  for (size_t done = 0; done < elf.size();) {
    ssize_t count = ::write(file, elf.data() + done, elf.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      absl::Status status = absl::ErrnoToStatus(errno, "cannot write the kernels to memory");
      ::close(file);
      return status;
    }
    done += count;
  }
  // The loader tells objects apart by name: the descriptor stays open so that no other program gets this one's.
  void *handle = ::dlopen(absl::StrCat("/proc/self/fd/", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    absl::Status status = absl::DataLossError(absl::StrCat("the kernels cannot be loaded: ", ::dlerror()));
    ::close(file);
    return status;
  }
  return std::unique_ptr<CodeObject>(new CodeObject(file, handle));
}

CodeObject::~CodeObject() {
  ::dlclose(handle);
  ::close(file);
}

void *CodeObject::lookup(const char *symbol) const { return ::dlsym(handle, symbol); }

std::vector<absl::Span<const std::byte>> CodeObject::loadedRanges() const {
  std::vector<absl::Span<const std::byte>> ranges;
  link_map *map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
    return ranges;
  struct Search {
    const link_map *map;
    std::vector<absl::Span<const std::byte>> &ranges;
  } search{map, ranges};
  auto visit = [](dl_phdr_info *info, size_t, void *argument) {
    auto *search = static_cast<Search *>(argument);
    // Several objects may lie at address 0; their dynamic sections tell them apart.
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
          info->dlpi_addr + info->dlpi_phdr[i].p_vaddr != reinterpret_cast<uintptr_t>(search->map->l_ld))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_LOAD)
        search->ranges.emplace_back(reinterpret_cast<const std::byte *>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                                    info->dlpi_phdr[i].p_memsz);
    return 1;
  };
  ::dl_iterate_phdr(visit, &search);
  return ranges;
}
