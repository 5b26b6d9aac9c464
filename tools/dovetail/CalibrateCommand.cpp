//===- CalibrateCommand.cpp - dovetail calibrate --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures this machine, and writes a cluster for `--cluster`.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Driver/Calibration.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/tools/Support.h"
#include "dovetail/tools/TensorFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <thread>

using namespace dovetail;

namespace {

struct CalibrateCommand {
  std::string output = "cluster.json";
  int ranks = 4;
  double seconds = 30;
  bool samples = false;

  llvm::LogicalResult run(Diagnostics &diagnostics);
};

} // namespace

static double takeMedian(std::vector<double> &values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

llvm::LogicalResult CalibrateCommand::run(Diagnostics &diagnostics) {
  if (ranks < 1 || ranks > 64)
    return diagnostics.error(ExitCode::Usage, "'--ranks " + llvm::Twine(ranks) + "': give a number from 1 to 64");
  if (!(seconds >= 1 && seconds <= 3600))
    return diagnostics.error(ExitCode::Usage, "'--seconds': give a number from 1 to 3600");
  if (absl::Status status = tools::checkWritable(output); !status.ok())
    return diagnostics.error(ExitCode::File, std::string(status.message()));
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores > 0 && ranks > cores) {
    diagnostics.warning("this machine has " + llvm::Twine(cores) +
                        " cores: exchanges between more ranks are not measured, as ranks would share cores");
    ranks = cores;
  }
  llvm::FailureOr<CalibrationSamples> measured = measureMachine(ranks, seconds, diagnostics);
  if (failed(measured))
    return llvm::failure();
  if (measured->exchanges.empty())
    diagnostics.warning("with one rank exchanges are not measured: their times in the file are guesses");
  Cluster cluster = fitCluster(*measured);
  if (absl::Status status = tools::writeText(output, cluster.write()); !status.ok())
    return diagnostics.error(ExitCode::File, std::string(status.message()));

  const Device &device = cluster.getDevice(0);
  std::vector<double> steps, exchanges;
  std::vector<std::vector<std::string>> rows = {{"what", "measured", "as fitted", "ratio"}};
  auto add = [&](std::vector<double> &errors, std::string name, double predicted, double seconds) {
    auto format = [](const char *text, double value) {
      std::string result;
      llvm::raw_string_ostream(result) << llvm::format(text, value);
      return result;
    };
    errors.push_back(getErrorFactor(predicted, seconds));
    rows.push_back({std::move(name), format("%.1f us", seconds * 1e6), format("%.1f us", predicted * 1e6),
                    format("%.2f", predicted / seconds)});
  };
  for (const StepSample &sample : measured->steps)
    add(steps, sample.name, device.getSeconds(sample.work), sample.seconds);
  for (const ExchangeSample &sample : measured->exchanges)
    add(exchanges, "exchange", Cluster::getSeconds(cluster.getLinks().front(), sample.work), sample.seconds);
  if (samples)
    llvm::outs() << tools::formatTable(rows);
  llvm::outs() << "wrote " << output << "\n";
  for (auto [what, errors] : {std::pair("steps", &steps), {"exchanges", &exchanges}})
    if (!errors->empty())
      llvm::outs() << "  " << errors->size() << " " << what << ", half of them predicted within "
                   << llvm::format("%.0f %%", 100 * takeMedian(*errors)) << "\n";
  return llvm::success();
}

void dovetail::addCalibrateCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand(
      "calibrate", "Measure how fast this machine is, and write it to a file for `dovetail compile --cluster`");
  command->footer(R"(The command compiles and runs small programs, with one thread a rank. It ignores measurements that
other work of the machine slows down now and then, but other work all the time falsifies the file.

Examples:
  dovetail calibrate
  dovetail calibrate -o machine.json --ranks 2)");
  auto state = std::make_shared<CalibrateCommand>();
  command->add_option("-o,--output", state->output, "File to write.")->type_name("FILE")->capture_default_str();
  command->add_option("--ranks", state->ranks, "Largest number of ranks between which exchanges are measured.")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--seconds", state->seconds, "Time to measure in seconds; compiling takes some seconds more.")
      ->type_name("S")
      ->capture_default_str();
  command->add_flag("--samples", state->samples, "Print each measurement, and its prediction from the file.");
  command->callback([state, &exitCode] {
    Progress::Shown progress;
    Diagnostics diagnostics(llvm::errs());
    (void)state->run(diagnostics);
    Progress::clear();
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
