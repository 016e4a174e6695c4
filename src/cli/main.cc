#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

struct Entry {
  const char* name;
  const char* help;
  Command takes;
  int (*run)(const Settings&, const Words& command);  // the command is what stands behind "--"
};

template <int (*Run)(const Settings&)>
int alone(const Settings& settings, const Words& command) {
  return command.empty() ? Run(settings)
                         : bad_input(Error("-- " + command.front() + ": only lab takes a command"));
}

constexpr std::array kCommands{
    Entry{"train", "Train a model with several workers, on this machine or under mpirun",
          Command::kTrain, alone<train>},
    Entry{"simulate", "Run the same algorithms in virtual time", Command::kSimulate,
          alone<simulate>},
    Entry{"presets", "List the known ways to synchronise", Command::kShow, alone<presets>},
    Entry{"models", "List the models that can be trained", Command::kShow, alone<models>},
    Entry{"doctor", "Show what was built in, what is missing and how to get it; check the network",
          Command::kDoctor, alone<doctor>},
    Entry{"probe", "Measure the machines and their network under mpirun, for simulate",
          Command::kProbe, alone<probe>},
    Entry{"profile", "Time the layers of a model, or estimate them, for simulate",
          Command::kProfile, alone<profile>},
    Entry{"lab", "Run a command on an emulated cluster: lab [SETTINGS] -- COMMAND ...",
          Command::kLab, lab},
};

std::string type_of(const Setting& setting) {
  switch (setting.form.kind()) {
    case Form::Kind::kInteger:
      return "INTEGER";
    case Form::Kind::kNumber:
      return "NUMBER";
    case Form::Kind::kWord:
      return CLI::detail::join(setting.form.words(), "|");
    default:
      return "TEXT";
  }
}

std::string help_of(const Setting& setting) {
  if (setting.fallback.is_null()) {
    return setting.help + " (required)";
  }
  if (to_values(Strategy{}).contains(setting.key)) {
    return setting.help + " [by preset]";
  }
  const std::string fallback =
      setting.fallback.is_string() ? setting.fallback.get<std::string>() : setting.fallback.dump();
  const bool silent = fallback.empty() || setting.form.kind() == Form::Kind::kSwitch;
  return silent ? setting.help : setting.help + " [" + fallback + "]";
}

void add_options(CLI::App& app, Command command) {
  for (const Setting& setting : settings_of(command)) {
    const std::string flag = "--" + setting.key;
    const std::string help = help_of(setting);
    if (setting.form.kind() == Form::Kind::kSwitch) {
      app.add_flag(flag, help);
    } else {
      app.add_option(flag, help)
          ->type_name(type_of(setting))
          ->expected(setting.bare.empty() ? 1 : 0, 1)
          ->take_last();
    }
  }
}

Settings::Flags flags_of(const CLI::App& app, Command command) {
  Settings::Flags flags;
  for (const Setting& setting : settings_of(command)) {
    if (const CLI::Option* option = app.get_option("--" + setting.key); option->count() > 0) {
      const std::string text = option->results().back();
      flags[setting.key] = text.empty() ? setting.bare : text;
    }
  }
  return flags;
}

// Refuses the first word that is neither an option nor a command, with what it may have meant.
Result<void> check_understood(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) {
    return {};
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    known.push_back(option->get_name());
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    known.push_back(command->get_name());
  }
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const std::string meant = suggestion(word, known);
  return Error(word + ": is not known to " + app.get_name() +
               (meant.empty() ? "; --help shows what is" : meant));
}

int run(const Entry& command, const CLI::App& app, const Words& behind) {
  const CLI::Option* config = app.get_option_no_throw("--config");
  const bool has_config = config != nullptr && config->count() > 0;
  const auto settings = Settings::resolve(command.takes, flags_of(app, command.takes),
                                          has_config ? config->results().front() : "");
  if (!settings) {
    return bad_input(settings.error());
  }
  start_logging(settings->text("log-level"));
  for (const std::string& warning : settings->warnings()) {
    spdlog::warn(warning);
  }
  return command.run(*settings, behind);
}

int run(Words words) {
  const auto dashes = std::ranges::find(words, "--");
  const Words behind(dashes == words.end() ? dashes : dashes + 1, words.end());
  words.erase(dashes, words.end());
  CLI::App app("Data-parallel training on slow networks", "sluice");
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(0, 1)->allow_extras();
  for (const Entry& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    add_options(*sub, command.takes);
    if (command.takes != Command::kShow && command.takes != Command::kDoctor) {
      const std::string help = "TOML file with any of these settings; flags win over it";
      sub->add_option("--config", help)->type_name("FILE");
    }
  }
  try {
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : bad_input(Error(e.what()));
  }
  if (const auto understood = check_understood(app); !understood) {
    return bad_input(understood.error());
  }
  for (const Entry& command : kCommands) {
    const CLI::App* sub = app.get_subcommand(command.name);
    if (sub->parsed()) {
      const auto understood = check_understood(*sub);
      return understood ? run(command, *sub, behind) : bad_input(understood.error());
    }
  }
  print(app.help());
  return kOk;
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
