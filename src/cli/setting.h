#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/document.h"
#include "model/strategy.h"
#include "nodes/presets.h"

namespace sluice::cli {

// Commands that take the same settings; values are bits of a set.
enum class Command : std::uint16_t {
  kTrain = 1,
  kSimulate = 2,
  kShow = 4,
  kLab = 8,
  kDoctor = 16,
  kProbe = 32,
  kProfile = 64,
  kStudy = 128,
  kReport = 256,
  kCompare = 512,
  kLaunch = 1024,
  kEvaluate = 2048,
};

// One thing that a user can set: the flag --KEY, and KEY in a configuration file.
struct Setting {
  std::string key;
  unsigned commands;  // set of Command
  Form form;
  Json fallback;  // null: the user must set it
  std::string help;
  std::string bare = {};   // the value of the bare flag; empty: it needs one
  std::string group = {};  // the heading under which help shows it
  bool repeats = false;    // the flag may occur several times; its values are joined by blanks
};

// The table of all settings, in the order of help and config.toml. A key appears at most once for
// each command.
std::vector<Setting> all_settings();
std::vector<Setting> settings_of(Command command);

// The key that a user wrote, in the spelling of the table: "warmup_epochs" is "warmup-epochs".
std::string spelled(std::string_view key);
// The end of an error about an unknown key: `; did you mean KEY?`, or nothing. Knows the words that
// other programs use for the same thing. The prefix is put before the key, such as "--".
std::string suggested_key(std::string_view key, std::span<const std::string> keys,
                          const std::string& prefix = "");

// The value of the flag in help: INTEGER, TEXT, a|b|c; empty for a switch.
std::string value_name(const Setting& setting);
// The help with the default value.
std::string full_help(const Setting& setting);

// The settings that make up a strategy, as an object of keys and values, and back.
Json to_values(const Strategy& strategy);
// With the settings of the optimiser that a preset has an opinion on.
Json to_values(const Preset& preset);
Strategy to_strategy(const Json& values);

}  // namespace sluice::cli
