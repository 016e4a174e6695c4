#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/settings.h"

namespace sluice::cli {

using Words = std::vector<std::string>;

struct CommandEntry {
  const char* name;
  const char* help;
  Command takes;
  // The words are those of the command that follows "--", or the operands.
  int (*run)(const Settings&, const Words& words);
  const char* operands = "";  // their name in help; "": it takes none
  const char* operands_help = "";

  // Whether --config can name a file with its settings.
  bool has_config() const {
    return takes != Command::kShow && takes != Command::kDoctor && takes != Command::kReport &&
           takes != Command::kStudy && takes != Command::kLaunch;
  }
};

// All commands, in the order of help.
std::span<const CommandEntry> command_table();
std::vector<std::string> command_names();

// Each command prints its result to standard output and returns the exit code of the program;
// console.h defines the codes.
int train(const Settings& settings);
int evaluate(const Settings& settings);
int simulate(const Settings& settings);
int compare(const Settings& settings);
int presets(const Settings& settings);
int models(const Settings& settings);
int doctor(const Settings& settings);
int probe(const Settings& settings);
int profile(const Settings& settings);
int study(const Settings& settings, const Words& names);
// Writes a page on these runs, which are folders.
int report(const Settings& settings, const Words& runs);
// The command is what follows "--".
int launch(const Settings& settings, const Words& command);
int lab(const Settings& settings, const Words& command);

// Files that are installed with the program, generated from the tables of commands and settings: a
// completion script for bash, zsh or fish, and a manual page.
inline constexpr const char* kConfigHelp =
    "TOML file with any of these settings; flags win over it";
Result<std::string> completion_script(const std::string& shell);
std::string manual_page();

}  // namespace sluice::cli
