//===- Diagnostics.cpp - Messages of the compiler -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Diagnostics.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Diagnostics.h"

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Text/SourceName.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dovetail;

void Diagnostics::printLine(StringRef kind, const Twine &message) {
  Progress::makeWay();
  // Names of models may have any characters, and must not act on a terminal.
  std::string text = message.str();
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  auto clean = [](StringRef line) { return text::clean(line, std::string::npos); };
  os << "dovetail: " << kind << ": " << llvm::join(llvm::map_range(lines, clean), "\n") << "\n";
}

LogicalResult Diagnostics::error(ExitCode code, const Twine &message) {
  if (exitCode == ExitCode::Ok)
    exitCode = code;
  printLine("error", message);
  return failure();
}

void Diagnostics::warning(const Twine &message) {
  if (!errorsOnly)
    printLine("warning", message);
}

void Diagnostics::remark(const Twine &message) {
  if (remarks && !errorsOnly)
    printLine("remark", message);
}

/// Replaces what a node is called in `message`.
static void useTitle(std::string &message, StringRef name, StringRef title) {
  for (size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + title.size()))
    message.replace(at, name.size(), title);
}

void Diagnostics::print(const Diagnostic &diagnostic, ExitCode code) {
  std::string message = diagnostic.str();
  StringRef node = getNodeName(diagnostic.getLocation());
  std::string title = getNodeTitle(diagnostic.getLocation());
  if (title != node)
    useTitle(message, ("node '" + node + "'").str(), "node '" + title + "'");
  // Messages about a node often begin with its name.
  if (!title.empty() && !StringRef(message).contains("'" + title + "'"))
    message = "node '" + title + "': " + message;
  // Whoever reads of a node of the model need not know the operation that stands for it.
  size_t begin = message.find("'dovetail."), end = message.find("' op ", begin);
  if (StringRef(message).starts_with("node '") && begin != std::string::npos && end != std::string::npos &&
      message.find('\'', begin + 1) == end)
    message.erase(begin, end + StringRef("' op ").size() - begin);
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    (void)error(code, message);
    break;
  case DiagnosticSeverity::Warning:
    warning(message);
    if (errorsOnly)
      return;
    break;
  case DiagnosticSeverity::Remark:
    remark(message);
    return;
  case DiagnosticSeverity::Note:
    printLine("note", message);
    break;
  }
  for (const Diagnostic &note : diagnostic.getNotes())
    print(note, code);
}

Diagnostics::Scope::Scope(Diagnostics &diagnostics, MLIRContext &context, ExitCode code)
    : code(code), handler(&context, [this, &diagnostics](Diagnostic &diagnostic) {
        diagnostics.print(diagnostic, this->code);
        return success();
      }) {}

Diagnostics::Held::Held(std::vector<Diagnostic> &list, MLIRContext &context)
    : handler(&context, [&list](Diagnostic &diagnostic) {
        list.push_back(std::move(diagnostic));
        return success();
      }) {}

void Diagnostics::print(ArrayRef<Diagnostic> list, ExitCode code) {
  for (const Diagnostic &diagnostic : list)
    print(diagnostic, code);
}
