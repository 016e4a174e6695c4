// Scripts with which shells complete command lines of sluice.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"

namespace sluice::cli {
namespace {

// The values that a setting can have; empty if they cannot be listed.
std::vector<std::string> values_of(const Setting& setting) {
  const bool is_switch = setting.form.kind() == Form::Kind::kSwitch;
  return is_switch ? std::vector<std::string>{"true", "false"} : setting.form.words();
}

// The settings of a command, and --config where it has one.
std::vector<Setting> options_of(const CommandEntry& command) {
  std::vector<Setting> options = settings_of(command.takes);
  if (command.has_config()) {
    options.push_back({"config", 0, Form::text(), "", kConfigHelp});
  }
  return options;
}

// The text with a backslash before each of these characters.
std::string escaped(const std::string& text, const std::string& characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string::npos) {
      result += '\\';
    }
    result += c;
  }
  return result;
}

std::string bash_script() {
  std::string values;
  std::string flags;
  for (const CommandEntry& command : command_table()) {
    std::string keys;
    for (const Setting& option : options_of(command)) {
      keys += "--" + option.key + " ";
      if (const auto words = values_of(option); !words.empty()) {
        values += fmt::format("    '{} --{}') words='{}' ;;\n", command.name, option.key,
                              fmt::join(words, " "));
      }
    }
    flags += fmt::format("      {}) words='{}--help' ;;\n", command.name, keys);
  }
  return fmt::format(R"(# bash completion for sluice; made by "sluice completion bash"
_sluice() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
  if [[ $COMP_CWORD -eq 1 || ( $COMP_CWORD -eq 2 && $previous == help ) ]]; then
    mapfile -t COMPREPLY < <(compgen -W '{} help' -- "$current")
    return
  fi
  case "${{COMP_WORDS[1]}} $previous" in
{}  esac
  if [[ $current == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{}    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _sluice sluice
)",
                     fmt::join(command_names(), " "), values, flags);
}

std::string zsh_script() {
  std::string commands;
  std::string cases;
  for (const CommandEntry& command : command_table()) {
    commands += "    " + shell_word(escaped(command.name, ":") + ":" + command.help) + "\n";
    cases += fmt::format("    {})\n      _arguments -S \\\n", command.name);
    for (const Setting& option : options_of(command)) {
      const bool is_switch = option.form.kind() == Form::Kind::kSwitch;
      const std::vector<std::string> words = values_of(option);
      const std::string help = escaped(option.help, "[]:\\");
      const std::string value =
          words.empty() ? ":value:_files" : fmt::format(":value:({})", fmt::join(words, " "));
      cases += "        " +
               shell_word("--" + option.key + (is_switch ? "=-" : "=") + "[" + help + "]" +
                          (is_switch ? ":" : "") + value) +
               " \\\n";
    }
    cases += "        '--help[show the settings]' '*::command:_default'\n      ;;\n";
  }
  return fmt::format(R"(#compdef sluice
# zsh completion for sluice; made by "sluice completion zsh"
_sluice() {{
  local -a commands=(
{}    'help:Show the settings of a command'
  )
  if (( CURRENT == 2 )) || [[ CURRENT -eq 3 && $words[2] == help ]]; then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
_sluice "$@"
)",
                     commands, cases);
}

std::string fish_script() {
  std::string script =
      "# fish completion for sluice; made by \"sluice completion fish\"\n"
      "complete -c sluice -n __fish_use_subcommand -f -a help -d 'Show the settings of a "
      "command'\n";
  for (const CommandEntry& command : command_table()) {
    script += fmt::format("complete -c sluice -n __fish_use_subcommand -f -a {} -d {}\n",
                          command.name, shell_word(command.help));
  }
  for (const CommandEntry& command : command_table()) {
    for (const Setting& option : options_of(command)) {
      const std::vector<std::string> words = option.form.words();
      const bool is_switch = option.form.kind() == Form::Kind::kSwitch;
      script +=
          fmt::format("complete -c sluice -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                      command.name, option.key,
                      is_switch       ? ""
                      : words.empty() ? " -r"
                                      : fmt::format(" -x -a '{}'", fmt::join(words, " ")),
                      shell_word(option.help));
    }
  }
  return script;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell) {
  if (shell == "bash") {
    return bash_script();
  }
  if (shell == "zsh") {
    return zsh_script();
  }
  if (shell == "fish") {
    return fish_script();
  }
  return Error("completion: is \"" + shell + "\", expected bash, zsh or fish");
}

}  // namespace sluice::cli
