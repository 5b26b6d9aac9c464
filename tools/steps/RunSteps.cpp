//===- RunSteps.cpp - Running an artifact step after step -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunSteps.h"

#include "StepFiles.h"
#include "StepPorts.h"

#include "dovetail/runtime/RankGroup.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;
using Clock = std::chrono::steady_clock;

namespace {

std::string formatDuration(double seconds) {
  if (seconds < 100)
    return absl::StrFormat("%.0f s", seconds);
  return seconds < 6000 ? absl::StrFormat("%.0f min", seconds / 60) : absl::StrFormat("%.1f h", seconds / 3600);
}

class StepsRun {
public:
  StepsRun(std::shared_ptr<const runtime::Program> program, const StepsRequest &request,
           const std::vector<Destination> &destinations, ProgressLine &progress)
      : program(std::move(program)), plan(this->program->getPlan()), request(request), destinations(destinations),
        progress(progress) {}

  absl::Status run(const runtime::RunnerOptions &options, Clock::time_point begin);

private:
  absl::Status countSteps();
  /// Says where everything goes, and checks that it takes the place of nothing.
  absl::Status placeOutputs();
  /// That all processes see the same files.
  absl::Status compareInputs();
  /// Finds the first step; an earlier run may have done some.
  absl::Status findFirst();
  absl::StatusOr<int64_t> readManifest();
  absl::Status warmUp();
  absl::Status runAll();
  /// One step, while the last one is written; then that is complete, and the next one's files are there.
  absl::Status runStep(int64_t step);
  absl::Status openFiles(int64_t step);
  /// The files of a step, which are on disk everywhere, get their names.
  absl::Status complete(int64_t step, OutputFiles &written);
  absl::Status printSummaries(int64_t step);
  void showProgress(int64_t step);

  /// Whether all ranks are in this process.
  bool isAlone() const { return runner->ranks().size() == static_cast<size_t>(program->numRanks()); }
  absl::Status ofStep(int64_t step, const absl::Status &status) const;

  std::shared_ptr<const runtime::Program> program;
  const runtime::Plan &plan;
  const StepsRequest &request;
  const std::vector<Destination> &destinations;
  ProgressLine &progress;
  std::vector<InputSequence> sequences;
  size_t named = 0; ///< The input whose files `namePlace` stands for; their number if there is none.
  int64_t total = 0, first = 0;
  std::optional<StepFiles> files;
  std::string suffix;
  std::optional<RunManifest> manifest;
  Clock::time_point started;
  std::unique_ptr<OutputFiles> current, last;
  bool canFinish = false; ///< Whether the last step has run everywhere, and all before it are complete.
  std::optional<StepWriter> writer;
  std::optional<StepReader> reader;
  std::optional<StepPorts> ports;
  std::unique_ptr<runtime::ProgramRunner> runner;
};

absl::Status StepsRun::countSteps() {
  absl::StatusOr<bool> connects = runtime::connectsProcesses(request.arguments.communicator);
  if (!connects.ok())
    return connects.status();
  absl::StatusOr<std::vector<InputSequence>> opened =
      openSequences(plan, request.arguments.inputs, *connects && program->numRanks() > 1);
  if (!opened.ok())
    return opened.status();
  sequences = *std::move(opened);
  named = sequences.size();
  size_t shortest = sequences.size();
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::optional<int64_t> length = sequences[i].length();
    const runtime::PortInfo &port = plan.inputs[i];
    if (!length)
      continue;
    if (port.fedBy >= 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", port.name, "' is output '", plan.outputs[port.fedBy].name, "' of the previous step, so only ",
          "its first value can be given, not values of ", *length, " steps"));
    if (*length == 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", port.name,
          "' has no steps: its first dimension counts the steps, and has extent 0; give a file with a step or more"));
    if (*length < request.steps)
      return absl::InvalidArgumentError(
          absl::StrCat("input '", port.name, "' is given for ", *length, " steps, but there are ", request.steps));
    if (shortest < sequences.size() && request.steps == 0 && *length != sequences[shortest].length())
      return absl::InvalidArgumentError(absl::StrCat("input '", plan.inputs[shortest].name, "' is given for ",
                                                     *sequences[shortest].length(), " steps, but input '", port.name,
                                                     "' for ", *length,
                                                     "; give the same number, or limit the steps with --steps"));
    if (shortest == sequences.size())
      shortest = i;
    if (sequences[i].hasFiles() && named == sequences.size())
      named = i;
  }
  total = request.steps > 0 ? request.steps : shortest < sequences.size() ? *sequences[shortest].length() : 1;
  if (total > 1 && shortest == sequences.size() && !plan.hasFeedback())
    return absl::InvalidArgumentError(absl::StrCat(
        "--steps ", total, ": all steps would be the same; compile the model with --feedback OUT:IN, or give an ",
        "input another file in each step, as NAME=FOLDER/*.npy, or a file with one dimension more"));
  return absl::OkStatus();
}

absl::Status StepsRun::placeOutputs() {
  if (request.resume && destinations.empty())
    return absl::InvalidArgumentError("--resume: a run without --output cannot be resumed; add --output");
  // What steps are fed must survive the run.
  bool keepsState = !destinations.empty() && (total > 1 || request.resume);
  files.emplace(plan, sequences, destinations, named, total);
  if (absl::Status status = files->place(request.arguments.artifact, keepsState); !status.ok())
    return status;
  if (keepsState)
    manifest.emplace(files->getBase() + ".json", request.arguments.artifact, *program, request.arguments.inputs,
                     request.outputs, sequences);
  return absl::OkStatus();
}

absl::Status StepsRun::ofStep(int64_t step, const absl::Status &status) const {
  if (status.ok())
    return status;
  // Who writes says of which step that is.
  bool saysStep = false;
  for (int64_t other : {step - 1, step}) {
    std::string words = absl::StrCat("step ", other + 1, ": ");
    saysStep |= absl::StartsWith(status.message(), words) || absl::StrContains(status.message(), ": " + words);
  }
  absl::Status named = total > 1 && !saysStep
                           ? absl::Status(status.code(), absl::StrCat("step ", step + 1, ": ", status.message()))
                           : status;
  return status.code() == absl::StatusCode::kInvalidArgument ? named : ofArtifact(request.arguments.artifact, named);
}

absl::Status StepsRun::compareInputs() {
  std::string seen = absl::StrCat(total);
  for (const InputSequence &sequence : sequences)
    absl::StrAppend(&seen, " ", hashTexts(sequence.files()));
  absl::StatusOr<std::vector<std::string>> all = runner->share(seen);
  if (!all.ok())
    return all.status();
  for (size_t rank = 0; rank < all->size(); ++rank)
    if ((*all)[rank] != all->front())
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " finds other files for --input than rank 0; give ",
                                                     "all processes a folder that they share"));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StepsRun::readManifest() {
  if (absl::Status status = files->lock(suffix); !status.ok())
    return status;
  absl::StatusOr<std::optional<RunManifest::Left>> read = manifest->read();
  if (!read.ok())
    // Who begins anew need not know.
    return request.resume ? absl::StatusOr<int64_t>(read.status()) : 0;
  manifest->removeTemporaries();
  const std::optional<RunManifest::Left> &left = *read;
  int64_t done = 0;
  if (left && request.resume) {
    done = left->done;
    if (done > total)
      return absl::InvalidArgumentError(absl::StrCat("--resume: '", manifest->getPath(), "' is of a run with ", done,
                                                     " complete steps, more than ", total));
    if (absl::Status status = manifest->checkFits(files->stateAfter(done - 1), done); !status.ok())
      return status;
  }
  if (left)
    files->clean(*left, done);
  if (request.resume)
    std::fprintf(stderr, "dovetail: remark: %s\n",
                 !left           ? absl::StrCat("there is no '", manifest->getPath(), "'; begins with step 1").c_str()
                 : done == total ? "all steps are complete"
                                 : absl::StrCat("goes on with step ", done + 1, " of ", total).c_str());
  return done;
}

absl::Status StepsRun::findFirst() {
  absl::StatusOr<std::string> made = OutputFiles::makeSuffix(*runner);
  if (!made.ok())
    return made.status();
  suffix = *std::move(made);
  if (!manifest)
    return agree(*runner, runner->isFirst() ? files->lock(suffix) : absl::OkStatus());
  absl::StatusOr<int64_t> found = runner->isFirst() ? readManifest() : 0;
  if (absl::Status status = agree(*runner, found.status()); !status.ok())
    return status;
  absl::StatusOr<std::vector<std::string>> all = runner->share(absl::StrCat(*found));
  if (!all.ok())
    return all.status();
  if (!absl::SimpleAtoi(all->front(), &first))
    return absl::InternalError("rank 0 sent a message without the first step");
  absl::Status status;
  for (const RunManifest::State &state : files->stateAfter(first < total ? first - 1 : -1)) {
    absl::StatusOr<std::unique_ptr<InputSource>> source = openInputFile(plan, plan.inputs[state.input], state.path);
    if (source.ok())
      ports->setInitial(state.input, *std::move(source));
    else if (status.ok())
      status = source.status();
  }
  if (status.ok() && runner->isFirst() && first < total)
    status = manifest->write(first, suffix, files->stateAfter(first - 1));
  return agree(*runner, status);
}

absl::Status StepsRun::warmUp() {
  ports->setIdle(true);
  for (int i = 0; i < request.warmup; ++i)
    if (absl::Status status = agree(*runner, runner->run(*ports)); !status.ok())
      return ofArtifact(request.arguments.artifact, status);
  ports->setIdle(false);
  return absl::OkStatus();
}

absl::Status StepsRun::openFiles(int64_t step) {
  if (!writer || step >= total)
    return absl::OkStatus();
  current = std::make_unique<OutputFiles>(files->of(step));
  current->setNames(plan, suffix);
  return runner->isFirst() ? current->create(plan) : absl::OkStatus();
}

absl::Status StepsRun::complete(int64_t step, OutputFiles &written) {
  absl::Status status;
  if (runner->isFirst()) {
    status = written.rename();
    if (status.ok() && manifest)
      status = manifest->write(step + 1, suffix, files->stateAfter(step));
    for (const RunManifest::State &state : files->stateAfter(step - 1))
      if (state.isOwn && status.ok())
        ::unlink(state.path.c_str());
  }
  if (status.ok())
    written.keep();
  return status;
}

absl::Status StepsRun::printSummaries(int64_t step) {
  absl::StatusOr<std::vector<Summary>> summaries = ports->takeSummaries();
  if (!summaries.ok() || !runner->isFirst())
    return summaries.status();
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const runtime::PortInfo &port = plan.outputs[i];
    rows.push_back({absl::StrCat("step ", step + 1), port.name, formatType(port.type, runner->getOutputShape(i)),
                    (*summaries)[i].text(port.type)});
  }
  progress.clear();
  std::fputs(formatTable(rows, "").c_str(), stdout);
  std::fflush(stdout);
  return absl::OkStatus();
}

void StepsRun::showProgress(int64_t step) {
  if (!runner->isFirst())
    return;
  std::string text = absl::StrCat("step ", step + 1, " of ", total);
  if (step > first) {
    double taken = std::chrono::duration<double>(Clock::now() - started).count();
    absl::StrAppend(&text, ", ", formatDuration(taken / (step - first) * (total - step)), " left");
  }
  progress.show(text);
}

absl::Status StepsRun::runStep(int64_t step) {
  showProgress(step);
  if (writer)
    writer->begin(step, *current);
  absl::Status own = ofStep(step, step == first ? runner->run(*ports) : runner->proceed(*ports));
  if (reader)
    reader->end(step);
  absl::Status settled = writer ? writer->wait() : absl::OkStatus();
  std::unique_ptr<OutputFiles> written = std::exchange(last, std::move(current));
  if (own.ok() && writer)
    writer->end();
  // What is wrong with inputs, rank 0 alone may have been told.
  absl::Status heard = agree(*runner, own.ok() ? settled : own);
  canFinish = heard.ok();
  if (!heard.ok()) {
    // What is complete stays; among processes, nobody knows it of the others any more.
    if (isAlone() && settled.ok() && written)
      (void)complete(step - 1, *written);
    return heard;
  }
  // The manifest must not say of a step that is not there that it is complete.
  if (written) {
    absl::Status before = agree(*runner, ofStep(step - 1, complete(step - 1, *written)));
    canFinish = before.ok();
    if (!before.ok())
      return before;
  }
  if (absl::Status status = agree(*runner, ofStep(step + 1, openFiles(step + 1))); !status.ok())
    return status;
  return writer ? absl::OkStatus() : printSummaries(step);
}

absl::Status StepsRun::runAll() {
  started = Clock::now();
  absl::Status status = agree(*runner, ofStep(first, openFiles(first)));
  int64_t step = first;
  for (; step < total && status.ok(); ++step)
    status = runStep(step);
  if (!last || !canFinish)
    return status;
  // The last step that ran, also if the next one cannot.
  absl::Status finished = agree(*runner, writer->wait());
  if (finished.ok())
    finished = agree(*runner, ofStep(step - 1, complete(step - 1, *last)));
  return status.ok() ? finished : status;
}

absl::Status StepsRun::run(const runtime::RunnerOptions &options, Clock::time_point begin) {
  Clock::time_point loaded = Clock::now();
  if (absl::Status status = countSteps(); !status.ok())
    return status;
  if (absl::Status status = placeOutputs(); !status.ok())
    return status;
  progress.show("start ranks");
  auto created = runtime::ProgramRunner::create(program, options);
  if (!created.ok())
    return ofArtifact(request.arguments.artifact, created.status());
  runner = *std::move(created);
  progress.clear();
  progress.mute(!runner->isFirst());
  if (runner->isFirst())
    printRemark(*runner);
  if (absl::Status status = compareOptions(*runner, optionsOf(request)); !status.ok())
    return status;
  if (absl::Status status = agree(*runner, compareInputs()); !status.ok())
    return status;
  if (!destinations.empty())
    writer.emplace();
  ports.emplace(*runner, sequences, writer ? &*writer : nullptr);
  if (absl::Status status = findFirst(); !status.ok())
    return status;
  Clock::time_point ready = Clock::now();
  if (first < total) {
    if (absl::Status status = warmUp(); !status.ok())
      return status;
    reader.emplace(plan, sequences, runner->ranks(), first, total);
    ports->setReader(*reader);
    ready = Clock::now();
    if (absl::Status status = runAll(); !status.ok())
      return status;
  }
  progress.clear();
  if (runner->isFirst() && !request.trace.empty() && first < total)
    if (absl::Status status = writeTrace(request.trace, *runner); !status.ok())
      return status;
  if (runner->isFirst() && request.timing) {
    double taken = std::chrono::duration<double>(Clock::now() - ready).count();
    auto seconds = [](double value) { return absl::StrFormat("%.3f s", value); };
    std::fputs(formatTable({{"load", seconds(std::chrono::duration<double>(loaded - begin).count())},
                            {"start ranks", seconds(std::chrono::duration<double>(ready - loaded).count())},
                            {absl::StrCat("steps, ", std::max<int64_t>(0, total - first)), seconds(taken)},
                            {"each", seconds(taken / std::max<int64_t>(1, total - first))}})
                   .c_str(),
               stderr);
  }
  return ofArtifact(request.arguments.artifact, runner->finish());
}

} // namespace

std::map<std::string, std::string> tools::optionsOf(const StepsRequest &request) {
  return {{"--output", absl::StrJoin(request.outputs, "\n")},
          {"--resume", absl::StrCat(request.resume)},
          {"--steps", absl::StrCat(request.steps)},
          {"--warmup", absl::StrCat(request.warmup)}};
}

bool tools::asksForSteps(const runtime::Plan &plan, const StepsRequest &request) {
  return request.steps > 0 || request.resume || haveSteps(plan, request.arguments.inputs) ||
         std::any_of(request.outputs.begin(), request.outputs.end(), hasPlaces);
}

absl::Status tools::runSteps(std::shared_ptr<const runtime::Program> program, const runtime::RunnerOptions &options,
                             const StepsRequest &request, const std::vector<Destination> &destinations,
                             ProgressLine &progress, std::chrono::steady_clock::time_point begin) {
  return StepsRun(std::move(program), request, destinations, progress).run(options, begin);
}
