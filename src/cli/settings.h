#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/setting.h"
#include "planner/tuning.h"

namespace sluice::cli {

// Where a value comes from. Later kinds win over earlier ones.
struct Origin {
  enum class Kind : std::uint8_t {
    kDefault,
    kPreset,
    kRecipe,
    kOptimizer,
    kConfig,
    kFlag,
    kLaunch
  };

  Kind kind = Kind::kDefault;
  std::string name = {};  // of the preset, the recipe, the optimiser or the file

  // "default", "from preset p3", "from recipe analysis", "from optimizer adam", "from run.toml",
  // "from flag", "from launch".
  std::string text() const;
};

// The effective settings of a command, each with its origin.
class Settings {
 public:
  // Flags as the user typed them, by key.
  using Flags = std::map<std::string, std::string>;

  // Errors name the flag, or the file and the key. An empty config path means no file. A file may
  // hold settings of other commands too, so that one file serves several.
  static Result<Settings> resolve(Command command, const Flags& flags,
                                  const std::string& config_path);

  // The same settings, with these flags besides. The command has each of these keys.
  Result<Settings> with(const Flags& flags) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }
  Command command() const { return command_; }

  // The key must be one of the command's, and of that type.
  std::string text(const std::string& key) const;
  std::int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool on(const std::string& key) const;
  const std::string& help(const std::string& key) const { return at(key).setting.help; }
  const Origin& origin(const std::string& key) const;
  // The file that a text names after this prefix. A path in a configuration file is looked for
  // beside that file first.
  std::string path(const std::string& key, const std::string& prefix = "") const;
  // Whether the user chose it, with a flag or in a file. The file may be that of an earlier run,
  // with all values: a default there is not a choice.
  bool is_chosen(const std::string& key) const;

  // An error if one of these was given as a flag.
  Result<void> refuse(std::initializer_list<const char*> keys, const std::string& why) const;
  // The launch of the program allows only this value: an error if the user asked for another.
  Result<void> dictate(const std::string& key, std::int64_t value, const std::string& why);

  // Replaces the text by an equivalent one: a file's path instead of its short name. The origin
  // stays.
  void rewrite(const std::string& key, const std::string& text);

  Strategy strategy() const;
  // Which of the strategy's sizes the user chose.
  ChosenSizes chosen_sizes() const;
  // Every setting by its key.
  Json values() const;
  // Every setting with its origin; a file for --config. The place of the run's record is a comment,
  // so that the file does not send another run there. `copies` replace texts that name files, by
  // key: they name copies in the run's folder.
  std::string to_toml(const std::map<std::string, std::string>& copies = {}) const;
  // As the user typed it.
  const std::string& command_line() const { return command_line_; }
  void set_command_line(std::string text) { command_line_ = std::move(text); }
  // What the user may not have meant, one line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Entry {
    Setting setting;
    Json value;
    Origin origin;
  };

  explicit Settings(Command command);

  const Entry* find(const std::string& key) const;
  const Entry& at(const std::string& key) const;
  Result<Json> check_flags(const Flags& flags) const;
  Result<Json> read_config(const std::string& path) const;
  void apply_preset(const Json& config, const Json& flags, const std::string& config_path);
  void apply_recipe(const Json& config, const Json& flags);
  void apply_optimizer(const Json& config, const Json& flags);
  void apply(const Json& values, const Origin& origin);
  Result<void> check_complete() const;

  Command command_;
  Flags flags_;
  std::string config_path_;
  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
  std::string command_line_;
};

}  // namespace sluice::cli
