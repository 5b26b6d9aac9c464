//===- Compilation.cpp - A model on its way to an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Compilation.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Compilation.h"

#include "Expected.h"
#include "GraphFile.h"
#include "LesserMesh.h"
#include "MemoryFit.h"
#include "MeshChoice.h"
#include "NearSizes.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Driver/Autotune.h"
#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/Sharding/Passes.h"
#include "dovetail/runtime/Interruption.h"
#include "dovetail/tools/Support.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Action.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"

#include <chrono>
#include <ctime>
#include <sys/resource.h>

using namespace mlir;
using namespace dovetail;

/// A look at fewer ranks takes no longer than this share of the processor time of the phases before, or so many
/// seconds.
static constexpr double kMostLook = 0.7, kShortLook = 0.5;

static double getSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double getProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

static int64_t getPeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

/// When something began.
struct Compilation::Instant {
  double seconds = getSeconds(), processorSeconds = getProcessorSeconds();

  /// What it has taken until now.
  PhaseTime getTime(Phase phase) const {
    return {phase, getSeconds() - seconds, getPeakBytes(), getProcessorSeconds() - processorSeconds};
  }
  /// The same, beside the phase.
  PhaseTime getTimeAside(Phase phase, StringRef name) const {
    PhaseTime time = getTime(phase);
    time.aside = name;
    return time;
  }
  /// Leaves out what was done since.
  void skip(const PhaseTime &time) {
    seconds += time.seconds;
    processorSeconds += time.processorSeconds;
  }
};

namespace {
/// Adds up what passes take into a list that outlives it.
class PassTimer : public PassInstrumentation {
public:
  explicit PassTimer(std::vector<PassTime> &times) : times(times) {}

  void runBeforePass(Pass *pass, Operation *) override { begin = getProcessorSeconds(); }
  void runAfterPass(Pass *pass, Operation *) override { add(pass->getArgument()); }
  void runAfterPassFailed(Pass *pass, Operation *) override { add(pass->getArgument()); }

private:
  void add(StringRef name) {
    // Those that only run others have no name.
    if (name.empty())
      return;
    auto entry = llvm::find_if(times, [&](const PassTime &time) { return time.name == name; });
    if (entry == times.end())
      entry = times.insert(times.end(), {name.str(), 0});
    entry->seconds += getProcessorSeconds() - begin;
  }

  std::vector<PassTime> &times;
  double begin = 0; ///< Of the pass that began last, as no pass with a name runs others.
};
} // namespace

ExitCode dovetail::getImportCode(ImportError error) {
  switch (error) {
  case ImportError::File:
    return ExitCode::File;
  case ImportError::InvalidModel:
    return ExitCode::InvalidModel;
  case ImportError::Unsupported:
    return ExitCode::Unsupported;
  case ImportError::Usage:
    return ExitCode::Usage;
  }
  llvm_unreachable("covered switch");
}

std::unique_ptr<MLIRContext> dovetail::createContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  // Whole operations, with constants and the cuts of all ranks, are of use to those who work on the compiler only.
  context->printOpOnDiagnostic(false);
  // Whoever has interrupted the compilation does not wait for the passes that are left of a phase.
  if (runtime::isInterruptible())
    context->registerActionHandler([](llvm::function_ref<void()> act, const tracing::Action &) {
      if (!runtime::isInterrupted())
        act();
    });
  return context;
}

LogicalResult Compilation::finishPhase(Phase phase, const Instant &begin, std::vector<PassTime> passes) {
  done = phase;
  times.push_back(begin.getTime(phase));
  times.back().passes = std::move(passes);
  return afterPhase ? afterPhase(phase) : success();
}

LogicalResult Compilation::import(StringRef path) {
  return import(
      path, [&] { return isGraphFile(path) ? importGraph(path, context) : importOnnx(path, options.import, context); });
}

LogicalResult Compilation::import(llvm::MemoryBufferRef model) {
  return import(model.getBufferIdentifier(), [&] { return importOnnx(model, options.import, context); });
}

LogicalResult Compilation::import(const ModelSource &model) {
  return model.bytes ? import(llvm::MemoryBufferRef(*model.bytes, model.path)) : import(StringRef(model.path));
}

LogicalResult Compilation::import(StringRef name, llvm::function_ref<ImportResult()> import) {
  showPhase(Phase::Import);
  Progress::Parts parts;
  Instant begin;
  ImportResult result;
  {
    Diagnostics::Scope scope(diagnostics, context, ExitCode::InvalidModel);
    result = import();
  }
  if (!result) {
    diagnostics.reclassify(getImportCode(result.error));
    return failure();
  }
  module = std::move(result.module);
  externalFiles = std::move(result.externalFiles);
  missingFiles = std::move(result.missingFiles);
  return finishPhase(Phase::Import, begin);
}

LogicalResult Compilation::settleOptions(Instant &begin) {
  CompileOptions given = options;
  memoryLimits = options.memory;
  if (options.autoRanks) {
    FailureOr<layout::Mesh> mesh = chooseMesh(*this, diagnostics);
    if (failed(mesh))
      return failure();
    options.mesh = std::move(*mesh);
    options.autoRanks.reset();
  }
  bool isDecided = options.shardingsSeed || options.following != Following::No || options.mesh.numRanks() == 1;
  if (options.advises && !isDecided && (options.objective == Objective::Time || !options.sizes.empty())) {
    given.mesh = options.mesh;
    given.autoRanks.reset();
    unsplit = std::make_unique<Compilation>(fork(std::move(given)));
  }
  if (options.comparesShares && !isDecided && options.objective == Objective::Time && !options.cluster->isUniform()) {
    Instant own;
    divideAmongUnequal(*this, options);
    times.push_back(own.getTimeAside(Phase::Propagate, "shares"));
    begin.skip(times.back());
  }
  if (!options.memory.empty() || (options.objective == Objective::Memory && options.comparesMemory && !isDecided)) {
    FailureOr<CompileOptions> fitting = fitMemory(*this, diagnostics);
    if (failed(fitting))
      return failure();
    options = std::move(*fitting);
  }
  return success();
}

LogicalResult Compilation::autotune(CompileOptions &tuned) {
  if (options.autotuneThreads == 0)
    return success();
  if (hasAlgorithms(options)) {
    Progress::show("measure algorithms");
    FailureOr<std::vector<plan::ConvolutionAlgorithm>> algorithms = measureAlgorithms(*this, diagnostics);
    if (failed(algorithms))
      return failure();
    tuned.algorithms = std::move(*algorithms);
  }
  auto isOther = [](plan::ConvolutionAlgorithm algorithm) { return algorithm != plan::ConvolutionAlgorithm::Library; };
  size_t others = llvm::count_if(tuned.algorithms, isOther);
  if (tuned.algorithms.empty())
    diagnostics.remark("--autotune: no convolution has a choice of algorithms; nothing was measured");
  else
    diagnostics.remark("--autotune: " + Twine(others) + " of " + Twine(tuned.algorithms.size()) +
                       " convolutions with a choice are faster by another algorithm than by the library's");
  return success();
}

LogicalResult Compilation::runPasses(Phase phase, const CompileOptions &tuned, std::vector<PassTime> &passTimes) {
  PassManager passes(&context);
  passes.addInstrumentation(std::make_unique<PassTimer>(passTimes));
  addPasses(phase, tuned, passes);
  return success(succeeded(passes.run(*module)) && !runtime::isInterrupted());
}

/// `kDeparturesAttrName` of a function that does not follow all that is stated.
static DictionaryAttr getDepartures(func::FuncOp function) {
  auto departures = function->getAttrOfType<DictionaryAttr>(kDeparturesAttrName);
  auto has = [&](StringRef kind) { return !departures.getAs<ArrayAttr>(kind).empty(); };
  return departures && (has("departures") || has("changes")) ? departures : DictionaryAttr();
}

/// Has functions that do not follow all say what that gains.
static void setGain(ModuleOp module, const std::string &gain) {
  for (auto function : getGraphs(module))
    if (DictionaryAttr departures = getDepartures(function)) {
      NamedAttrList entries(departures);
      entries.set("gain", StringAttr::get(module.getContext(), gain));
      function->setAttr(kDeparturesAttrName, entries.getDictionary(module.getContext()));
    }
}

LogicalResult Compilation::propagate(std::vector<PassTime> &passTimes) {
  bool mayDepart = options.comparesDepartures && options.objective == Objective::Time && options.follow < 1 &&
                   !options.shards.empty();
  OwningOpRef<ModuleOp> before = mayDepart ? module->clone() : ModuleOp();
  std::vector<Diagnostic> said;
  auto run = [&] {
    Diagnostics::Held held(said, context);
    return runPasses(Phase::Propagate, options, passTimes);
  };
  LogicalResult result = run();
  if (succeeded(result) && before && llvm::any_of(getGraphs(*module), getDepartures))
    compareDepartures(std::move(before), said, passTimes);
  diagnostics.print(said, getPhaseExitCode(Phase::Propagate));
  for (auto function : getGraphs(*module))
    if (auto departures = dyn_cast_or_null<DictionaryAttr>(function->removeAttr(kDeparturesAttrName))) {
      emitDepartures(departures);
      llvm::append_range(unalignedSizes, departures.getAs<ArrayAttr>("unaligned").getAsRange<DictionaryAttr>());
    }
  return result;
}

void Compilation::compareDepartures(OwningOpRef<ModuleOp> before, std::vector<Diagnostic> &said,
                                    std::vector<PassTime> &passTimes) {
  Progress::show("plan without departures");
  Progress::Parts parts;
  Diagnostics quiet(llvm::nulls());
  CompileOptions strict = options;
  strict.follow = 1;
  Compilation following(context, std::move(strict), quiet);
  following.module = std::move(before);
  std::vector<Diagnostic> saidOfFollowing;
  {
    Diagnostics::Held held(saidOfFollowing, context);
    if (failed(following.runPasses(Phase::Propagate, following.options, passTimes)))
      return;
  }
  auto take = [&] {
    module = std::move(following.module);
    said = std::move(saidOfFollowing);
  };
  // Plans that are expected to take as long are the same one.
  Expected ownExpected = getExpected(*module), strictExpected = getExpected(*following.module);
  if (ownExpected.seconds == strictExpected.seconds && ownExpected.bytes == strictExpected.bytes)
    return take();
  auto simulate = [&](Compilation &split) {
    Compilation copy = split.fork(makeAside(split.options), quiet);
    copy.done = Phase::Propagate;
    return tryProgram(copy, *options.cluster, /*estimatesMemory=*/!memoryLimits.empty());
  };
  std::optional<PredictedRun> departed = simulate(*this), followed = simulate(following);
  if (!departed || !followed)
    return;
  // Departures do not help ranks that lack memory either way.
  bool fits = llvm::all_of(llvm::enumerate(memoryLimits), [&](const auto &entry) {
    auto rank = static_cast<int>(entry.index());
    return static_cast<double>(followed->getMemory(rank)) <=
           std::max(entry.value(), static_cast<double>(departed->getMemory(rank)));
  });
  double seconds = departed->simulation.getSeconds(), followedSeconds = followed->simulation.getSeconds();
  if (fits && seconds >= (1 - options.follow) * followedSeconds)
    return take();
  std::string gain = fits ? describeGain(seconds, followedSeconds) : describeShortage(seconds, followedSeconds);
  auto format = [](const PredictedRun &run) { return tools::formatBytes(run.getReceivedBytes()); };
  setGain(*module, gain + "; ranks receive " + format(*departed) + ", and " + format(*followed) + " with --follow 100");
}

void Compilation::showPhase(Phase phase) const {
  Progress::show(getPhaseName(phase), static_cast<size_t>(phase) + 1, static_cast<size_t>(lastPhase) + 1);
}

LogicalResult Compilation::runPhase(Phase phase) {
  if (runtime::isInterrupted())
    return failure();
  showPhase(phase);
  Progress::Parts parts;
  Instant begin;
  // Only what is left after simplification can be named in requests.
  if (phase == Phase::Propagate &&
      (failed(settleOptions(begin)) || failed(attachRequests(*module, options, diagnostics))))
    return failure();
  CompileOptions tuned = options;
  if (phase == Phase::Lower && failed(autotune(tuned)))
    return failure();
  Diagnostics::Scope scope(diagnostics, context, getPhaseExitCode(phase));
  std::vector<PassTime> passTimes;
  if (failed(phase == Phase::Propagate ? propagate(passTimes) : runPasses(phase, tuned, passTimes))) {
    if (diagnostics.getExitCode() == ExitCode::Ok && !runtime::isInterrupted())
      return diagnostics.error(ExitCode::Internal, "phase " + getPhaseName(phase) +
                                                       " failed without a message; this is a defect of the compiler");
    return failure();
  }
  if (phase == Phase::Propagate && unsplit)
    expectedSeconds = getExpected(*module).seconds;
  if (failed(finishPhase(phase, begin, std::move(passTimes))))
    return failure();
  if (phase == Phase::Lower && unsplit) {
    adviseSizes();
    if (options.objective == Objective::Time)
      adviseMesh();
  }
  return success();
}

void Compilation::adviseSizes() {
  if (unalignedSizes.empty())
    return;
  Progress::show("other sizes");
  Progress::Parts parts;
  Instant begin;
  for (const std::string &text : findNearSizes(*unsplit, *this, unalignedSizes))
    diagnostics.warning(text);
  times.push_back(begin.getTimeAside(Phase::Lower, "sizes"));
}

void Compilation::adviseMesh() {
  std::unique_ptr<Compilation> before = std::move(unsplit);
  Progress::show("fewer ranks");
  Progress::Parts parts;
  Instant begin;
  double all = 0, split = 0, made = 0;
  for (const PhaseTime &time : times) {
    if (!time.aside.empty())
      continue;
    all += time.processorSeconds;
    (time.phase == Phase::Propagate ? split : made) += time.phase >= Phase::Propagate ? time.processorSeconds : 0;
  }
  double most = std::max(kShortLook, kMostLook * all);
  auto mayTake = [&](double seconds) { return begin.getTime(Phase::Lower).processorSeconds + seconds <= most; };
  std::optional<LesserMesh> lesser =
      findLesserMesh(*before, *this, expectedSeconds, [&] { return mayTake(split); }, [&] { return mayTake(made); });
  times.push_back(begin.getTimeAside(Phase::Lower, "advice"));
  if (lesser)
    diagnostics.warning("fewer ranks are predicted to be faster: " + lesser->describe(options.mesh));
}

LogicalResult Compilation::runTo(Phase last) {
  for (Phase phase : getPhases())
    if (phase > *done && phase <= last && phase != Phase::Emit && failed(runPhase(phase)))
      return failure();
  return success();
}

LogicalResult Compilation::generateCode() {
  if (failed(runTo(Phase::CodeGen)))
    return failure();
  showPhase(Phase::CodeGen);
  Progress::Parts parts;
  Progress::show("machine code");
  Instant begin;
  Diagnostics::Scope scope(diagnostics, context, ExitCode::Internal);
  CodeGenOptions codeGen = options.codeGen;
  codeGen.dumpLLVM = dumpLLVM;
  codeGen.dumpAssembly = dumpAssembly;
  FailureOr<ProgramCode> generated = options.target->compile(*module, codeGen);
  if (failed(generated))
    return failure();
  code = std::move(*generated);
  PhaseTime &time = times.back(), own = begin.getTime(Phase::CodeGen);
  time.seconds += own.seconds;
  time.processorSeconds += own.processorSeconds;
  time.peakBytes = own.peakBytes;
  return success();
}

Compilation Compilation::fork(CompileOptions otherOptions, Diagnostics &otherDiagnostics) {
  Compilation copy(context, std::move(otherOptions), otherDiagnostics);
  copy.module = module->clone();
  copy.done = done;
  return copy;
}

LogicalResult Compilation::prepack(Artifact &artifact) {
  FailureOr<std::vector<std::byte>> bytes = artifact.serialize();
  if (failed(bytes))
    return failure();
  FailureOr<std::shared_ptr<const runtime::Program>> program = load(*bytes, "--prepack", diagnostics);
  if (failed(program))
    return failure();
  *bytes = {};
  FailureOr<std::vector<std::byte>> image = packWeights(*program, options.prepackThreads, diagnostics);
  if (failed(image))
    return failure();
  artifact.setPacked(std::move(*image));
  return success();
}

LogicalResult Compilation::emit(llvm::function_ref<LogicalResult(const Artifact &)> write) {
  if (failed(generateCode()) || runtime::isInterrupted())
    return failure();
  showPhase(Phase::Emit);
  Progress::Parts parts;
  Instant begin;
  Diagnostics::Scope scope(diagnostics, context, ExitCode::Internal);
  FailureOr<Artifact> artifact = Artifact::create(*module, code, options.sourceNames);
  if (failed(artifact) || failed(artifact->check()))
    return failure();
  if (options.prepackThreads > 0 && failed(prepack(*artifact)))
    return failure();
  scope.setCode(getPhaseExitCode(Phase::Emit));
  if (failed(write(*artifact)))
    return failure();
  done = Phase::Emit;
  times.push_back(begin.getTime(Phase::Emit));
  return success();
}

LogicalResult Compilation::write(StringRef path) {
  return emit([&](const Artifact &artifact) { return artifact.write(path.str()); });
}

FailureOr<std::vector<std::byte>> Compilation::serialize() {
  FailureOr<std::vector<std::byte>> bytes = failure();
  LogicalResult result = emit([&](const Artifact &artifact) -> LogicalResult {
    bytes = artifact.serialize();
    return bytes;
  });
  if (failed(result))
    return failure();
  return bytes;
}
