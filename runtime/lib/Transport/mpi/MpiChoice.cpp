//===- MpiChoice.cpp - Which MPI a process uses --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiChoice.h"

#include "../../Plugin/PluginLibrary.h"

#include "dovetail/runtime/Places.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

using namespace dovetail::runtime;
using namespace dovetail::runtime::mpi;

namespace {

/// A binary interface that several MPIs have.
struct Interface {
  const char *name;
  const char *suffix; ///< Of plug-ins for it.
  std::vector<const char *> files;
  bool (*isLaunchers)(); ///< Whether a launcher for it has started the process.
};

bool isSet(const char *variable) { return std::getenv(variable) != nullptr; }

const std::vector<Interface> &interfaces() {
  static const auto *all = new std::vector<Interface>{
      {"Open MPI", "openmpi", {"libmpi.so.40"}, [] { return isSet("OMPI_COMM_WORLD_SIZE") || isSet("PMIX_RANK"); }},
      // Debian's file has the second name.
      {"MPICH", "mpich", {"libmpi.so.12", "libmpich.so.12"}, [] {
         return isSet("PMI_RANK") && (isSet("PMI_FD") || isSet("PMI_PORT"));
       }}};
  return *all;
}

/// Files of several MPIs have had one name (libmpi.so.12 of Open MPI 1.10).
bool has(void *library, const Interface &interface) {
  bool isOpenMpi = ::dlsym(library, "ompi_mpi_comm_world") != nullptr;
  return ::dlsym(library, "MPI_Init_thread") && isOpenMpi == (interface.suffix == std::string("openmpi"));
}

bool hasBegun(void *library) {
  auto *function = reinterpret_cast<int (*)(int *)>(::dlsym(library, "MPI_Initialized"));
  int result = 0;
  return function && function(&result) == 0 && result;
}

/// A function that tools, whose functions come before those of MPI, leave to MPI.
constexpr const char *ownFunction = "PMPI_Init_thread";

/// The library of the MPI whose functions the process finds first, by whatever name; empty if there is none.
std::string globalFile() {
  Dl_info info;
  void *function = ::dlsym(RTLD_DEFAULT, ownFunction);
  return function && ::dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
}

/// The libraries for an interface that are in the Python environment.
std::vector<std::string> installedFiles(const Interface &interface) {
  std::vector<std::string> files;
  std::filesystem::path folder = environmentFolder("lib");
  std::error_code error;
  for (const char *file : interface.files)
    if (!folder.empty() && std::filesystem::exists(folder / file, error))
      files.push_back(folder / file);
  return files;
}

struct Candidate {
  const Interface *interface;
  std::string loaded;                 ///< The file of an MPI that the process has loaded.
  std::vector<std::string> installed; ///< In the Python environment.
  bool hasBegun = false, isLaunchers = false;

  int order() const { return hasBegun ? 0 : !loaded.empty() ? 1 : isLaunchers ? 2 : !installed.empty() ? 3 : 4; }
};

/// One for each interface, the best first.
std::vector<Candidate> findCandidates() {
  std::vector<Candidate> found;
  for (const Interface &interface : interfaces()) {
    Candidate candidate{&interface, "", installedFiles(interface), false, interface.isLaunchers()};
    std::vector<std::string> files(interface.files.begin(), interface.files.end());
    if (std::string global = globalFile(); !global.empty())
      files.insert(files.begin(), global);
    for (const std::string &file : files)
      if (void *library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
        if (candidate.loaded.empty() && has(library, interface)) {
          candidate.loaded = libraryFile(library, file);
          candidate.hasBegun = hasBegun(library);
        }
        ::dlclose(library);
      }
    found.push_back(std::move(candidate));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate &a, const Candidate &b) { return a.order() < b.order(); });
  return found;
}

/// Opens a library for all of the process, which keeps it.
absl::StatusOr<void *> openLibrary(const Candidate &candidate) {
  const Interface &interface = *candidate.interface;
  std::vector<std::string> paths = candidate.installed, problems;
  paths.insert(paths.end(), interface.files.begin(), interface.files.end());
  if (!candidate.loaded.empty())
    paths = {candidate.loaded};
  for (const std::string &path : paths) {
    void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library && has(library, interface))
      return library;
    if (library) {
      problems.push_back(absl::StrCat(libraryFile(library, path), " is no ", interface.name));
      ::dlclose(library);
    } else if (const char *reason = ::dlerror();
               reason && !absl::StrContains(reason, absl::StrCat(path, ": cannot open shared object file"))) {
      problems.push_back(reason);
    }
  }
  if (!problems.empty())
    return absl::UnavailableError(absl::StrJoin(problems, ", "));
  std::filesystem::path folder = environmentFolder("lib");
  return absl::UnavailableError(absl::StrCat(absl::StrJoin(interface.files, " or "), " is not ",
                                             folder.empty() ? "" : absl::StrCat("in ", folder.string(), " or "),
                                             "where the dynamic loader looks"));
}

absl::StatusOr<Choice> open(const Candidate &candidate, const std::string &plugins) {
  std::string name = absl::StrCat(plugins, "_", candidate.interface->suffix);
  std::vector<std::string> built = listPlugins(absl::StrCat(plugins, "_"));
  if (std::find(built.begin(), built.end(), candidate.interface->suffix) == built.end())
    return absl::UnavailableError(
        absl::StrCat("this build of Dovetail has no plug-in for it (libdovetail_", name, ".so)"));
  absl::StatusOr<void *> library = openLibrary(candidate);
  if (!library.ok())
    return library.status();
  std::string file = libraryFile(*library, candidate.interface->files.front());
  // The plug-in gets the first function of a name that the process has.
  if (::dlsym(RTLD_DEFAULT, ownFunction) != ::dlsym(*library, ownFunction))
    return absl::UnavailableError(
        absl::StrCat("the process finds functions of another MPI before the functions of ", file));
  absl::StatusOr<const TransportPlugin *> plugin =
      openPlugin<TransportPlugin>(name, transportPluginSymbol, transportPluginVersion);
  if (!plugin.ok())
    return plugin.status();
  return Choice{*plugin, std::move(file), ""};
}

} // namespace

absl::StatusOr<Choice> mpi::choose(const std::string &plugins) {
  std::vector<std::string> problems;
  std::string remark;
  std::vector<Candidate> candidates = findCandidates();
  for (const Candidate &candidate : candidates) {
    absl::StatusOr<Choice> choice = open(candidate, plugins);
    if (choice.ok()) {
      choice->remark = remark;
      for (const Candidate &other : candidates)
        if (other.isLaunchers && !candidate.isLaunchers && !candidate.loaded.empty())
          choice->remark = absl::StrCat("a launcher for ", other.interface->name,
                                        " has started this process, but the process had loaded ", candidate.loaded);
      return choice;
    }
    // A second MPI in one process would be called by the first.
    if (!candidate.loaded.empty() || absl::IsFailedPrecondition(choice.status()))
      return absl::Status(choice.status().code(),
                          candidate.loaded.empty()
                              ? std::string(choice.status().message())
                              : absl::StrCat("this process has loaded ", candidate.interface->name, " (",
                                             candidate.loaded, "), but ", choice.status().message()));
    problems.push_back(absl::StrCat(candidate.interface->name, ": ", choice.status().message()));
    if (candidate.isLaunchers)
      remark = absl::StrCat("a launcher for ", candidate.interface->name,
                            " has started this process, but no library of it can be used: ", choice.status().message());
  }
  return absl::UnavailableError(absl::StrCat("no MPI can be used (", absl::StrJoin(problems, "; "),
                                             "); install one with its launcher: openmpi-bin or mpich of Debian, or the "
                                             "Python packages openmpi or mpich in the environment of Dovetail"));
}
