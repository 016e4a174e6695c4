// The manual page of sluice.

#include <fmt/format.h>

#include <string>

#include "cli/commands.h"

namespace sluice::cli {
namespace {

// The text for roff: hyphens that can be copied, and no line that is taken for a request.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string option_entry(const std::string& key, const std::string& value,
                         const std::string& help) {
  const std::string behind = value.empty() ? "" : " \\fI" + roff(value) + "\\fR";
  return fmt::format(".TP\n\\fB\\-\\-{}\\fR{}\n{}\n", roff(key), behind, roff(help));
}

std::string command_section(const CommandEntry& command) {
  std::string text = fmt::format(".SS sluice {}\n{}.\n", roff(command.name), roff(command.help));
  if (command.has_config()) {
    text += option_entry("config", "FILE", kConfigHelp);
  }
  std::string group;
  for (const Setting& setting : settings_of(command.takes)) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format(".PP\n\\fI{}\\fR\n", roff(group));
    }
    text += option_entry(setting.key, value_name(setting), full_help(setting));
  }
  return text;
}

}  // namespace

std::string manual_page() {
  std::string page =
      ".TH SLUICE 1 \"\" \"sluice " SLUICE_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\nsluice \\- data\\-parallel training on slow networks\n"
      ".SH SYNOPSIS\n.B sluice\n.I COMMAND\n.RI [ SETTINGS ]\n"
      ".SH DESCRIPTION\n"
      "Sluice trains neural networks on several workers when the network between them is too slow, "
      "and simulates what a way to synchronise would cost on a cluster.\n"
      "A switch is turned on by its name alone, and on or off by a value: "
      "\\fB\\-\\-json false\\fR. Keys may be written with \\- or with _.\n"
      ".SH COMMANDS\n";
  for (const CommandEntry& command : command_table()) {
    page += command_section(command);
  }
  page +=
      ".SS sluice help \\fICOMMAND\\fR\nShow the settings of a command.\n"
      ".SH ENVIRONMENT\n.TP\n.B SLUICE_PROFILES\n"
      "Folders, separated by colons, in which profiles are looked for by name before those that "
      "come with Sluice.\n"
      ".SH EXIT STATUS\n0: success. 1: the run failed. 2: wrong usage, or a file that cannot be "
      "used.\n"
      ".SH SEE ALSO\n.BR mpirun (1)\n";
  return page;
}

}  // namespace sluice::cli
