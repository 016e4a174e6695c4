#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/profile_search.h"
#include "cli/simulate_sweep.h"
#include "cli/specs.h"

namespace sluice::cli {
namespace {

constexpr const char* kGeneral = "General";

bool takes_operands(const CommandEntry& command) { return *command.operands != '\0'; }

void add_options(CLI::App& app, const CommandEntry& command) {
  app.get_help_ptr()->group(kGeneral);
  if (command.has_config()) {
    app.add_option("--config", kConfigHelp)->type_name("FILE")->group(kGeneral);
  }
  if (takes_operands(command)) {
    app.add_option(command.operands, command.operands_help)
        ->allow_extra_args()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(kGeneral);
  }
  for (const Setting& setting : settings_of(command.takes)) {
    const std::string flag = "--" + setting.key;
    const std::string help = full_help(setting);
    if (setting.form.kind() == Form::Kind::kSwitch) {
      app.add_flag(flag, help)->group(setting.group);
    } else {
      app.add_option(flag, help)
          ->type_name(value_name(setting))
          ->expected(setting.bare.empty() ? 1 : 0, 1)
          ->multi_option_policy(setting.repeats ? CLI::MultiOptionPolicy::TakeAll
                                                : CLI::MultiOptionPolicy::TakeLast)
          ->group(setting.group);
    }
  }
}

Settings::Flags flags_of(const CLI::App& app, Command command) {
  Settings::Flags flags;
  for (const Setting& setting : settings_of(command)) {
    if (const CLI::Option* option = app.get_option("--" + setting.key); option->count() > 0) {
      const Words given = option->results();
      const std::string text =
          setting.repeats ? fmt::format("{}", fmt::join(given, " ")) : given.back();
      flags[setting.key] = text.empty() ? setting.bare : text;
    }
  }
  return flags;
}

// Refuses the first argument that is neither an option nor a command, with a suggestion.
Result<void> check_understood(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) {
    return {};
  }
  const std::string word = extras.front().substr(0, extras.front().find('='));
  std::string meant;
  if (word.starts_with("--")) {
    std::vector<std::string> keys;
    for (const CLI::Option* option : app.get_options()) {
      keys.push_back(option->get_single_name());
    }
    meant = suggested_key(word.substr(2), keys, "--");
  } else if (!app.get_subcommands({}).empty()) {
    meant = suggestion(word, command_names());
  }
  return Error(word + ": is not known to " + app.get_name() +
               (meant.empty() ? "; --help shows what is" : meant));
}

// The arguments as CLI11 wants them: keys in the spelling of the table, and a switch and its value
// in one argument.
Words normalised(const Words& words) {
  std::set<std::string> switches;
  for (const Setting& setting : all_settings()) {
    if (setting.form.kind() == Form::Kind::kSwitch) {
      switches.insert("--" + setting.key);
    }
  }
  Words result;
  for (const std::string& given : words) {
    const std::string word = given == "-n" || given == "-np" ? "--np" : given;  // as in mpirun
    const bool is_value = word == "true" || word == "false";
    if (is_value && !result.empty() && switches.contains(result.back())) {
      result.back() += "=" + word;
    } else if (word.starts_with("--")) {
      const std::string key = word.substr(0, word.find('='));
      result.push_back(spelled(key) + word.substr(key.size()));
    } else {
      result.push_back(word);
    }
  }
  return result;
}

// The arguments as a shell would read them, in UTF-8.
std::string command_line_of(const Words& words) {
  std::string line = "sluice";
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-_=+./:,@%").find(static_cast<char>(c)) != std::string_view::npos;
    });
    line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    line += '\'';
  }
  for (std::size_t at = utf8_length(line); at < line.size(); at = utf8_length(line)) {
    line[at] = '?';
  }
  return line;
}

// The operands of a command that takes some, else what stands behind "--".
Words words_for(const CommandEntry& command, const CLI::App& app, const Words& behind) {
  return takes_operands(command) ? app.get_option(command.operands)->results() : behind;
}

int run(const CommandEntry& command, const CLI::App& app, const Words& behind,
        const std::string& command_line) {
  const CLI::Option* config = app.get_option_no_throw("--config");
  const bool has_config = config != nullptr && config->count() > 0;
  Settings::Flags flags = flags_of(app, command.takes);
  if (command.takes == Command::kSimulate || command.takes == Command::kCompare) {
    sweep_over_presets(flags);
  }
  auto resolved =
      Settings::resolve(command.takes, flags, has_config ? config->results().front() : "");
  if (!resolved) {
    return bad_input(resolved.error());
  }
  Settings settings = *std::move(resolved);
  settings.set_command_line(command_line);
  if (const auto located = locate_files(settings); !located) {
    return bad_input(located.error());
  }
  start_logging(settings.text("log-level"));
  for (const std::string& warning : settings.warnings()) {
    spdlog::warn(warning);
  }
  return command.run(settings, words_for(command, app, behind));
}

int run_command_line(Words words, const Words& behind, const std::string& command_line) {
  CLI::App app("Data-parallel training on slow networks", "sluice");
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(0, 1)->allow_extras();
  app.footer("\"sluice help COMMAND\" shows the settings of a command.");
  for (const CommandEntry& command : command_table()) {
    add_options(*app.add_subcommand(command.name, command.help), command);
  }
  app.add_subcommand("help", "Show the settings of a command: help COMMAND");
  try {
    words = normalised(words);
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : bad_input(Error(e.what()));
  }
  if (const auto understood = check_understood(app); !understood) {
    return bad_input(understood.error());
  }
  for (const CommandEntry& command : command_table()) {
    const CLI::App* sub = app.get_subcommand(command.name);
    if (sub->parsed()) {
      const auto understood = check_understood(*sub);
      return understood ? run(command, *sub, behind, command_line) : bad_input(understood.error());
    }
  }
  print(app.help());
  return kOk;
}

int run_help(const std::string& command) {
  const std::vector<std::string> names = command_names();
  if (std::ranges::find(names, command) == names.end()) {
    return bad_input(Error(command + ": is not a command of sluice" + suggestion(command, names)));
  }
  return run_command_line({command, "--help"}, {}, "");
}

int run_completion(const std::string& shell) {
  const auto script = completion_script(shell);
  if (!script) {
    return bad_input(script.error());
  }
  print(*script);
  return kOk;
}

int run(Words words) {
  const std::string command_line = command_line_of(words);
  const auto dashes = std::ranges::find(words, "--");
  const Words behind(dashes == words.end() ? dashes : dashes + 1, words.end());
  words.erase(dashes, words.end());
  if (words == Words{"help"}) {
    words.clear();
  }
  if (words.size() == 2 && words[0] == "help" && !words[1].starts_with("-")) {
    return run_help(words[1]);
  }
  if (words.size() == 2 && words[0] == "completion") {  // for the installation, as is the next
    return run_completion(words[1]);
  }
  if (words == Words{"manual"}) {
    print(manual_page());
    return kOk;
  }
  return run_command_line(std::move(words), behind, command_line);
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using sluice::Error;
  try {
    const int code = sluice::cli::run({argv + 1, argv + argc});
    return std::fflush(stdout) == 0 ? code : sluice::cli::failed(Error("cannot write the result"));
  } catch (const std::exception& e) {
    return sluice::cli::failed(e);
  }
}
