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
#include <optional>
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

/// The long names of the options of `command`, those for tests apart.
std::vector<std::string> listOptions(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      if (!option->get_group().empty())
        names.push_back("--" + name);
  return names;
}

/// The commands beside `command` that take option `name`, as in messages; empty if none does.
std::string listTakers(const std::string &name, const CLI::App &command) {
  std::string list;
  const CLI::App *app = command.get_parent();
  if (!app)
    return list;
  for (const CLI::App *other : app->get_subcommands([](const CLI::App *) { return true; })) {
    std::vector<std::string> names = listOptions(*other);
    if (std::find(names.begin(), names.end(), name) != names.end())
      list += (list.empty() ? "`" + app->get_name() + " " : ", `") + other->get_name() + "`";
  }
  return list;
}

std::string describeUnknownOption(const std::string &argument, const CLI::App &command) {
  std::string word = argument.substr(0, argument.find('='));
  std::string takers = listTakers(word, command);
  if (!takers.empty())
    return "`" + command.get_name() + "` has no option '" + word + "'; give it to " + takers;
  return "there is no option '" + word + "'" + text::suggest(word, listOptions(command));
}

/// How option `name` is written with a value.
std::string describeUse(const std::string &name, const CLI::App &command) {
  const CLI::Option *option = command.get_option_no_throw(name);
  std::string type = option ? option->get_type_name() : "";
  // A check adds what it is to the name.
  type = type.substr(0, type.find(':'));
  return name + " " + (type.empty() ? "VALUE" : type);
}

std::string describeMissing(const std::string &name, const CLI::App &command) {
  return name + " is given without a value; write " + describeUse(name, command);
}

/// The option in `arguments` of `command` that would take the next option for its value, if there is one.
std::optional<std::string> findSwallowing(const std::vector<std::string> &arguments, const CLI::App &command) {
  auto find = [&](const std::string &text) -> const CLI::Option * {
    return text.size() > 1 && text[0] == '-' ? command.get_option_no_throw(text) : nullptr;
  };
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "--")
      return std::nullopt;
    const CLI::Option *option = find(arguments[i]);
    if (!option || option->get_items_expected_min() == 0)
      continue;
    const std::string &value = arguments[++i];
    if (find(value.substr(0, value.find('='))))
      return arguments[i - 1];
  }
  return std::nullopt;
}

} // namespace

std::string tools::describeParseError(const CLI::ParseError &error, const CLI::App &command) {
  std::string message = error.what();
  bool isExtra = dynamic_cast<const CLI::ExtrasError *>(&error);
  // An option that there is not may be why an argument is missing.
  if (isExtra || dynamic_cast<const CLI::RequiredError *>(&error)) {
    std::vector<std::string> extra = command.remaining();
    auto option = std::find_if(extra.begin(), extra.end(),
                               [](const std::string &text) { return text.size() > 1 && text[0] == '-'; });
    if (option != extra.end())
      return describeUnknownOption(*option, command);
    if (isExtra && !extra.empty())
      return "'" + extra.front() + "' is one argument too many";
  }
  // The parser's own words for what is left are for those who know it.
  static const std::pair<std::regex, const char *> rules[] = {
      {std::regex("(.*): At Most 1 required but received ([0-9]+)"), "$1 is given $2 times; give it once"},
      {std::regex("Could not convert: (.*) = (.*)"), "$1 $2: '$2' is not a number that this option accepts"},
      {std::regex("(.*): Value (.*) not in range (.*) to (.*)"), "$1 $2: give a number from $3 to $4"},
      {std::regex("(.*) is required"), "the argument '$1' is missing"},
  };
  static const std::regex missing("(.*): 1 required (.*) missing");
  if (std::smatch match; std::regex_match(message, match, missing))
    return describeMissing(match[1], command);
  for (const auto &[pattern, text] : rules)
    if (std::regex_match(message, pattern))
      return std::regex_replace(message, pattern, text, std::regex_constants::format_first_only);
  return message;
}

std::string tools::describeMissingValue(const CLI::App &command, const std::vector<std::string> &arguments) {
  std::optional<std::string> option = findSwallowing(arguments, command);
  return option ? describeMissing(*option, command) : "";
}

std::string tools::describeMissingValue(const CLI::App &app, int argc, char **argv) {
  if (argc < 2)
    return "";
  for (const CLI::App *command : app.get_subcommands([&](const CLI::App *each) { return each->get_name() == argv[1]; }))
    if (std::string message = describeMissingValue(*command, {argv + 2, argv + argc}); !message.empty())
      return message + "; see `" + app.get_name() + " " + command->get_name() + " --help`";
  return "";
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
