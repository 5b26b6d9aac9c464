//===- dovetail.cpp - The program dovetail -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says which version it is of, and hands all other command lines to libdovetail-compiler.so, so that there is one copy
// of LLVM in an installation. It opens the library only then: to load LLVM takes more time and memory than an answer.
//
//===----------------------------------------------------------------------===//

#include "Facts.h"

#include "dovetail/compiler.h"
#include "dovetail/dovetail.h"
#include "dovetail/runtime/Places.h"
#include "dovetail/runtime/Version.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <string>

using namespace dovetail;

namespace {

constexpr const char *libraryName = "libdovetail-compiler.so." DOVETAIL_ABI_VERSION;

bool isForVersion(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--version") != 0 && std::strcmp(argv[i], "--json") != 0)
      return false;
  return argc > 1;
}

int printVersion(int argc, char **argv) {
  CLI::App app("", "dovetail");
  tools::ProgramFacts facts = compilerFacts();
  facts.commit = tools::commit();
  tools::addVersionFlags(app, facts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &version) {
    return app.exit(version);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "dovetail: error: %s; see `dovetail --help`\n", error.what());
    return DOVETAIL_ERROR_USAGE;
  }
  return DOVETAIL_OK;
}

/// The function `name` of the library, or null.
template <typename Function> Function *find(void *library, const char *name) {
  return reinterpret_cast<Function *>(::dlsym(library, name));
}

} // namespace

int main(int argc, char **argv) {
  if (isForVersion(argc, argv))
    return printVersion(argc, argv);
  // In the installation of this program, or where the system looks.
  std::string path = runtime::installedFolder("lib") / libraryName;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    path = libraryName;
  void *library = ::dlopen(path.c_str(), RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "dovetail: error: cannot load the compiler: %s; install Dovetail again\n", ::dlerror());
    return DOVETAIL_ERROR_FILE;
  }
  auto *version = find<decltype(dovetail_compiler_version)>(library, "dovetail_compiler_version");
  auto *command = find<decltype(dovetail_main)>(library, "dovetail_main");
  if (!version || !command || std::strcmp(version(), runtime::version()) != 0) {
    std::fprintf(stderr,
                 "dovetail: error: '%s' is of %s%s, but this program is of Dovetail %s; install the two from "
                 "the same release\n",
                 path.c_str(), version ? "Dovetail " : "an older Dovetail", version ? version() : "",
                 runtime::version());
    return DOVETAIL_ERROR_ARTIFACT;
  }
  return command(argc, argv);
}
