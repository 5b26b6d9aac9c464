//===- ReferenceFiles.cpp - Outputs as files have them --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements readReferences.
//
//===----------------------------------------------------------------------===//

#include "ReferenceFiles.h"

#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/tools/Support.h"

using namespace dovetail;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::StringRef;
using llvm::Twine;
using tools::NamedTensor;

namespace {
class ReferenceReader {
public:
  ReferenceReader(llvm::ArrayRef<NamedTensor> outputs, Diagnostics &diagnostics)
      : outputs(outputs), diagnostics(diagnostics), references(outputs.size()) {}

  LogicalResult read(StringRef spec);
  std::vector<NamedTensor> take() { return std::move(references); }

private:
  LogicalResult usage(StringRef spec, const Twine &message) {
    return diagnostics.error(ExitCode::Usage, "--expect " + spec + ": " + message);
  }
  /// The output that `spec` begins with; the longest one, as names may contain '='.
  const NamedTensor *findOutput(StringRef spec) const;
  LogicalResult add(StringRef spec, const NamedTensor &output, NamedTensor reference);
  std::string listOutputs() const;

  llvm::ArrayRef<NamedTensor> outputs;
  Diagnostics &diagnostics;
  std::vector<NamedTensor> references;
};
} // namespace

std::string ReferenceReader::listOutputs() const {
  std::vector<std::string> names;
  for (const NamedTensor &output : outputs)
    names.push_back(output.name);
  return listNames(names);
}

const NamedTensor *ReferenceReader::findOutput(StringRef spec) const {
  const NamedTensor *found = nullptr;
  for (const NamedTensor &output : outputs)
    if (spec.starts_with(output.name + "=") && (!found || found->name.size() < output.name.size()))
      found = &output;
  return found;
}

LogicalResult ReferenceReader::add(StringRef spec, const NamedTensor &output, NamedTensor reference) {
  // Files do not tell types of at most 8 bits apart.
  if (runtime::isNarrow(output.type) && reference.type == runtime::ElementType::U8)
    reference.type = output.type;
  else if (reference.isOpaque)
    return usage(spec, "the file has elements of one byte whose type it does not name; convert them with astype");
  if (reference.type != output.type || reference.shape != output.shape)
    return usage(spec, "the file has " + tools::formatType(reference.type, reference.shape) + ", but output '" +
                           output.name + "' is " + tools::formatType(output.type, output.shape) +
                           (reference.type != output.type ? "; convert it with astype" : ""));
  NamedTensor &place = references[&output - outputs.begin()];
  if (!place.name.empty())
    return usage(spec, "output '" + output.name + "' is given twice");
  place = std::move(reference);
  place.name = output.name;
  return llvm::success();
}

LogicalResult ReferenceReader::read(StringRef spec) {
  const NamedTensor *output = findOutput(spec);
  StringRef path = output ? spec.drop_front(output->name.size() + 1) : spec;
  path.consume_front("@");
  bool isArchive = path.ends_with(".npz");
  if (!output && !isArchive) {
    if (path.contains('='))
      return usage(spec, "the program has no output of this name; its outputs are " + listOutputs());
    if (!path.ends_with(".npy"))
      return usage(spec, "expected NAME=FILE.npy, NAME=FILE.npz or FILE.npz");
    if (outputs.size() != 1)
      return usage(spec, "there are several outputs; write NAME=FILE.npy, with one of " + listOutputs());
    output = &outputs.front();
  }
  auto fail = [&](const absl::Status &status) {
    return diagnostics.error(getExitCode(status), "--expect " + spec + ": " + std::string(status.message()));
  };
  if (!isArchive) {
    absl::StatusOr<NamedTensor> tensor = tools::readNpy(path.str());
    return tensor.ok() ? add(spec, *output, *std::move(tensor)) : fail(tensor.status());
  }
  absl::StatusOr<std::vector<NamedTensor>> arrays = tools::readNpz(path.str(), output ? output->name : "");
  if (!arrays.ok())
    return fail(arrays.status());
  for (NamedTensor &array : *arrays) {
    const NamedTensor *target = output;
    // The only array of an archive may have any name.
    if (!output || (array.name != output->name && arrays->size() > 1)) {
      target = llvm::find_if(outputs, [&](const NamedTensor &each) { return each.name == array.name; });
      if (!output && target == outputs.end())
        return usage(spec, "there is no output '" + array.name + "'; the outputs are " + listOutputs());
      if (output)
        continue;
    }
    if (failed(add(spec, *target, std::move(array))))
      return llvm::failure();
  }
  if (output && references[output - outputs.begin()].name.empty())
    return usage(spec, "the file has no array '" + output->name + "'");
  return llvm::success();
}

FailureOr<std::vector<NamedTensor>> dovetail::readReferences(llvm::ArrayRef<std::string> specs,
                                                             llvm::ArrayRef<NamedTensor> outputs,
                                                             Diagnostics &diagnostics) {
  ReferenceReader reader(outputs, diagnostics);
  for (const std::string &spec : specs)
    if (failed(reader.read(spec)))
      return llvm::failure();
  return reader.take();
}
