//===- MpiLibrary.cpp - The MPI of a process -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiLibrary.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dovetail::runtime;
using namespace dovetail::runtime::mpi;

namespace {

/// As documented (DOVETAIL_ERROR_DEVICE).
constexpr int communicationExitCode = 8;
/// What processes that ran as they should may take to part.
constexpr auto partingTimeout = std::chrono::seconds(30);
/// What it may take to tell the launcher of a failure.
constexpr auto abortTimeout = std::chrono::seconds(5);

/// The launcher reads the last messages of a process within this time. MPICH's drops messages that come with the end.
constexpr std::chrono::milliseconds readTimeout(100);

/// What rank 0 may take to remove what is unfinished, before another rank has the launcher kill it.
constexpr std::chrono::milliseconds firstTimeout(1000);

std::atomic<bool> hasFailed = false;
bool isFirst = true; ///< Of all processes; once MPI has begun.

/// Ends the process unless it is destroyed in time: nothing else ends a call that waits for others.
class Watchdog {
public:
  Watchdog(std::chrono::milliseconds timeout, int exitCode, std::string message) : state(std::make_shared<State>()) {
    std::thread([state = state, timeout, exitCode, message = std::move(message)] {
      std::unique_lock lock(state->mutex);
      if (state->over.wait_for(lock, timeout, [&] { return state->isOver; }))
        return;
      if (!message.empty())
        std::fprintf(stderr, "dovetail: error: %s\n", message.c_str());
      ::_exit(exitCode);
    }).detach();
  }
  ~Watchdog() {
    std::lock_guard lock(state->mutex);
    state->isOver = true;
    state->over.notify_all();
  }
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

private:
  struct State {
    std::mutex mutex;
    std::condition_variable over;
    bool isOver = false;
  };
  std::shared_ptr<State> state;
};

/// Called when the process exits.
void end(int exitCode, void *) {
  int isOver = 0;
  if (MPI_Finalized(&isOver) != MPI_SUCCESS || isOver)
    return;
  if (exitCode == 0 && !hasFailed) {
    Watchdog watchdog(partingTimeout, communicationExitCode,
                      absl::StrCat("MPI_Finalize did not return within ", partingTimeout.count(),
                                   " s: another rank has not finished"));
    std::lock_guard lock(callMutex());
    MPI_Finalize();
    return;
  }
  std::fflush(nullptr);
  // It hears of failures as the others do, holds locks and has made the files of outputs, so it is to go first.
  std::this_thread::sleep_for(isFirst ? readTimeout : firstTimeout);
  int code = exitCode != 0 ? exitCode : communicationExitCode;
  Watchdog watchdog(abortTimeout, code, "");
  // Another thread may be in a call that does not return.
  std::unique_lock lock(callMutex(), std::chrono::milliseconds(500));
  MPI_Abort(MPI_COMM_WORLD, code);
}

const char *nameOf(int threads) {
  return threads == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
         : threads == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
         : threads == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                            : "MPI_THREAD_MULTIPLE";
}

} // namespace

std::timed_mutex &mpi::callMutex() {
  static auto *mutex = new std::timed_mutex; // Used until the very end of the process.
  return *mutex;
}

const char *mpi::findLauncher(int &size) {
  for (const char *variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS",
                               "SLURM_NTASKS", "WORLD_SIZE"})
    if (const char *value = std::getenv(variable); value && absl::SimpleAtoi(value, &size) && size > 1)
      return variable;
  return nullptr;
}

/// Whether what has started the process tells MPI of the others: by PMIx, or one of the interfaces before it.
static bool hasProcessManager() {
  // Other variables with these beginnings are settings of users.
  for (const char *name : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD", "PMI_SIZE", "PMI_PORT",
                           "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"})
    if (std::getenv(name))
      return true;
  return false;
}

absl::Status mpi::otherLauncher(const char *variable, int started) {
  return absl::UnavailableError(
      absl::StrCat(libraryVersion(), " finds this process alone, but ", variable, " says that ", started,
                   " were started, by the launcher of another MPI; use the mpirun of this MPI or "
                   "srun --mpi=pmix, or leave out --comm mpi to run all ranks in this process"));
}

std::string mpi::libraryVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
    return "of an unknown version";
  // Open MPI goes on with where it was built, and MPICH, whose words are apart by tabs, with how.
  std::string version(text, static_cast<size_t>(length));
  version.resize(std::min(version.find_first_of(",\n"), version.size()));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version;
}

absl::Status mpi::check(int result, const char *function) {
  if (result == MPI_SUCCESS)
    return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(result, text, &length) != MPI_SUCCESS)
    length = 0;
  return absl::UnavailableError(
      absl::StrCat(libraryVersion(), ": ", function, " failed: ", std::string(text, static_cast<size_t>(length))));
}

absl::Status mpi::begin(std::chrono::milliseconds timeout) {
  std::lock_guard lock(callMutex());
  int hasBegun = 0, hasEnded = 0, threads = MPI_THREAD_SINGLE;
  if (absl::Status status = check(MPI_Initialized(&hasBegun), "MPI_Initialized"); !status.ok())
    return status;
  if (absl::Status status = check(MPI_Finalized(&hasEnded), "MPI_Finalized"); !status.ok())
    return status;
  if (hasEnded)
    return absl::UnavailableError("MPI has ended in this process (MPI_Finalize): connect ranks before that");
  if (!hasBegun) {
    // There MPI_Init of some ends the process, with a code of its own.
    int started = 0;
    if (const char *variable = findLauncher(started); variable && !hasProcessManager())
      return otherLauncher(variable, started);
    Watchdog watchdog(timeout, communicationExitCode,
                      absl::StrCat(libraryVersion(), ": MPI_Init did not return within ", timeout.count() / 1000.0,
                                   " s: another process did not come; allow more time (--timeout)"));
    absl::Status status = check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads), "MPI_Init_thread");
    if (!status.ok())
      return status;
    int rank = 0;
    if (absl::Status status = check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"); !status.ok())
      return status;
    isFirst = rank == 0;
    ::on_exit(end, nullptr);
  } else if (absl::Status status = check(MPI_Query_thread(&threads), "MPI_Query_thread"); !status.ok()) {
    return status;
  }
  if (threads < MPI_THREAD_SERIALIZED)
    return absl::UnavailableError(absl::StrCat(
        libraryVersion(), " was begun with ", nameOf(threads), ", but ranks call it from threads of their own; ",
        hasBegun ? "begin it with MPI_Init_thread and MPI_THREAD_SERIALIZED or more"
                 : "use one that has MPI_THREAD_SERIALIZED"));
  return absl::OkStatus();
}

void mpi::keepForEver(std::shared_ptr<void> memory) {
  static auto *kept = new std::vector<std::shared_ptr<void>>; // Until the very end of the process.
  std::lock_guard lock(callMutex());
  kept->push_back(std::move(memory));
}

void mpi::noteFailure() { hasFailed = true; }

absl::Status mpi::waitUntil(const std::atomic<bool> &isOver, absl::FunctionRef<absl::Status(bool &isDone)> ask,
                            Clock::time_point deadline) {
  // A wake-up takes about as long as the first limit; who waits longer leaves the core to others, and then to itself.
  constexpr std::chrono::microseconds spinning(50), yielding(2000);
  constexpr timespec nap = {0, 50'000};
  Clock::time_point begin = Clock::now();
  for (;;) {
    bool isDone = false;
    {
      std::lock_guard lock(callMutex());
      if (absl::Status status = ask(isDone); !status.ok() || isDone)
        return status;
    }
    if (isOver)
      return absl::UnavailableError("the communication was ended");
    Clock::time_point now = Clock::now();
    if (now > deadline)
      return absl::DeadlineExceededError("other processes did not answer in time; allow more time (--timeout)");
    if (now - begin > yielding)
      ::nanosleep(&nap, nullptr);
    else if (now - begin > spinning)
      ::sched_yield();
  }
}
