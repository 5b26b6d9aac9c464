//===- Usage.cpp - Wrong command lines ------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says what is wrong with a command line, and what was probably meant.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Text/Suggestion.h"
#include "dovetail/tools/RunCommands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <regex>
#include <vector>

using namespace dovetail;

namespace {

std::string describeUnknownCommand(const std::string &word, const CLI::App &app) {
  std::vector<std::string> names;
  std::string list;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; })) {
    names.push_back(command->get_name());
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  std::string suggestion = text::suggest(word, names);
  return "there is no command '" + word + "'" + (suggestion.empty() ? "; the commands are " + list : suggestion);
}

std::string describeUnknownOption(const std::string &argument, const CLI::App &command) {
  std::string word = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return "there is no option '" + word + "'" + text::suggest(word, names);
}

} // namespace

std::string tools::describeParseError(const CLI::ParseError &error, const CLI::App &command) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError *>(&error)) {
    std::vector<std::string> extra = command.remaining();
    auto option = std::find_if(extra.begin(), extra.end(),
                               [](const std::string &text) { return text.size() > 1 && text[0] == '-'; });
    if (option != extra.end())
      return describeUnknownOption(*option, command);
    return extra.empty() ? message : "'" + extra.front() + "' is one argument too many";
  }
  // The parser's own words for what is left are for those who know it.
  static const std::pair<std::regex, const char *> rules[] = {
      {std::regex("(.*): At Most 1 required but received ([0-9]+)"), "$1 is given $2 times; give it once"},
      {std::regex("(.*): 1 required (.*) missing"), "$1 is given without a value; write $1 $2"},
      {std::regex("Could not convert: (.*) = (.*)"), "$1: '$2' is no number that it takes"},
  };
  for (const auto &[pattern, text] : rules)
    if (std::regex_match(message, pattern))
      return std::regex_replace(message, pattern, text, std::regex_constants::format_first_only);
  return message;
}

bool tools::namesUnknownCommand(const CLI::App &app, int argc, char **argv) {
  return app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-';
}

std::string tools::describeUsageError(const CLI::ParseError &error, const CLI::App &app, int argc, char **argv) {
  const CLI::App *command = &app;
  std::string path = app.get_name(), message;
  for (const CLI::App *subcommand : app.get_subcommands()) {
    command = subcommand;
    path += " " + subcommand->get_name();
  }
  if (namesUnknownCommand(app, argc, argv)) {
    message = describeUnknownCommand(argv[1], app);
  } else if (command == &app && argc == 1) {
    message = "a command is required";
  } else {
    message = describeParseError(error, *command);
  }
  return message + (message.back() == '?' ? " See `" : "; see `") + path + " --help`";
}
