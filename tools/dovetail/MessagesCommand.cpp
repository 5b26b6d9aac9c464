//===- MessagesCommand.cpp - dovetail messages ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the texts of all diagnostics, which scripts/messages gathers from the sources.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <nlohmann/json.hpp>

using namespace dovetail;

/// Messages.tsv: kind, part and text of each message.
extern "C" const unsigned char dovetailMessages[];
extern "C" const unsigned long dovetailMessagesSize;

namespace {
struct MessagesCommand {
  std::vector<std::string> words;
  bool isJson = false;

  void run(llvm::raw_ostream &out, Diagnostics &diagnostics) const;
};
} // namespace

void MessagesCommand::run(llvm::raw_ostream &out, Diagnostics &diagnostics) const {
  llvm::StringRef list(reinterpret_cast<const char *>(dovetailMessages), dovetailMessagesSize);
  llvm::SmallVector<llvm::StringRef> lines;
  list.split(lines, '\n', -1, /*KeepEmpty=*/false);
  nlohmann::json messages = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (llvm::StringRef line : lines) {
    if (!llvm::all_of(words, [&](const std::string &word) { return line.contains_insensitive(word); }))
      continue;
    auto [kind, rest] = line.split('\t');
    auto [part, text] = rest.split('\t');
    if (isJson)
      messages.push_back({{"kind", kind}, {"part", part}, {"text", text}});
    else
      rows.push_back({kind.str(), part.str(), text.str()});
  }
  if (messages.empty() && rows.empty())
    (void)diagnostics.error(
        ExitCode::Usage,
        "no message contains " +
            llvm::join(llvm::map_range(words, [](const std::string &word) { return "'" + word + "'"; }), " and ") +
            "; give fewer words, without names and numbers");
  else
    out << (isJson ? messages.dump(1) + "\n" : tools::formatTable(rows));
}

void dovetail::addMessagesCommand(CLI::App &app, int &exitCode, CommandContext &context) {
  CLI::App *command = app.add_subcommand("messages", "List the texts of all errors, warnings and remarks");
  command->footer(
      R"(Each line has the kind, the part of the program, and the text. {name} stands for a value, {one|other} for one of
several texts. Kind 'piece' is part of another message, such as its reason.

Examples:
  dovetail messages
  dovetail messages "no axis"
  dovetail messages warning planner
  dovetail messages --json)");
  auto state = std::make_shared<MessagesCommand>();
  command->add_option("words", state->words, "List only the lines that contain all of these words, in any case.")
      ->type_name("WORD");
  command->add_flag("--json", state->isJson, "Print JSON.");
  command->callback([state, &exitCode, &context] {
    Diagnostics diagnostics(context.err);
    state->run(context.out, diagnostics);
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
