#include "cli/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/optimizer_settings.h"
#include "cli/recipe.h"
#include "nodes/presets.h"

namespace sluice::cli {
namespace {

// A flag's text as the value that a file would hold. Text that does not parse stays text, and the
// form rejects it.
Json value_of_flag(const std::string& text, Form::Kind kind) {
  const auto parse = [&]<class T>(T value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end ? Json(value) : Json(text);
  };
  switch (kind) {
    case Form::Kind::kInteger:
      return parse(std::int64_t{});
    case Form::Kind::kNumber:
      return parse(double{});
    case Form::Kind::kSwitch:
      return text == "true" || text == "false" ? Json(text == "true") : Json(text);
    case Form::Kind::kText:
    case Form::Kind::kWord:
    case Form::Kind::kTable:
    case Form::Kind::kList:
      return text;
  }
  return text;
}

// JSON's notation works for TOML, except for a character that only TOML escapes.
std::string toml_value(const Json& value) {
  std::string text;
  for (const char c : value.dump()) {
    if (c == '\x7f') {
      text += "\\u007f";
    } else {
      text += c;
    }
  }
  return text;
}

std::vector<std::string> keys_of(const std::vector<Setting>& settings) {
  std::vector<std::string> keys;
  std::ranges::transform(settings, std::back_inserter(keys), &Setting::key);
  return keys;
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::kDefault:
      return "default";
    case Kind::kPreset:
      return "from preset " + name;
    case Kind::kRecipe:
      return "from recipe " + name;
    case Kind::kOptimizer:
      return "from optimizer " + name;
    case Kind::kConfig:
      return "from " + name;
    case Kind::kFlag:
      return "from flag";
    case Kind::kLaunch:
      return "from launch";
  }
  return "?";
}

Settings::Settings(Command command) : command_(command) {
  for (Setting& setting : settings_of(command)) {
    Json value = setting.fallback;
    entries_.push_back({std::move(setting), std::move(value), {}});
  }
}

Result<Settings> Settings::resolve(Command command, const Flags& flags,
                                   const std::string& config_path) {
  Settings settings(command);
  settings.flags_ = flags;
  settings.config_path_ = config_path;
  const auto config = config_path.empty() ? Json::object() : settings.read_config(config_path);
  if (!config) {
    return config.error();
  }
  const auto given = settings.check_flags(flags);
  if (!given) {
    return given.error();
  }
  if (settings.find("preset") != nullptr) {
    settings.apply_preset(*config, *given, config_path);
  }
  if (settings.find("recipe") != nullptr) {
    settings.apply_recipe(*config, *given);
  }
  if (settings.find("optimizer") != nullptr) {
    settings.apply_optimizer(*config, *given);
  }
  settings.apply(*config, {Origin::Kind::kConfig, config_path});
  settings.apply(*given, {Origin::Kind::kFlag});
  if (const auto complete = settings.check_complete(); !complete) {
    return complete.error();
  }
  return settings;
}

Result<Settings> Settings::with(const Flags& flags) const {
  Flags all = flags;
  all.insert(flags_.begin(), flags_.end());
  auto resolved = resolve(command_, all, config_path_);
  if (!resolved) {
    return resolved;
  }
  Settings settings = *std::move(resolved);
  settings.command_line_ = command_line_;
  return settings;
}

Result<Json> Settings::read_config(const std::string& path) const {
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  const auto table = parse_toml(*text, path);
  if (!table) {
    return table.error();
  }
  const std::vector<std::string> keys = keys_of(all_settings());
  Json values = Json::object();
  for (const auto& [written, value] : table->items()) {
    const std::string key = spelled(written);
    if (key == "study" && value.is_object()) {
      continue;  // what sluice study reads: formats/study.h
    }
    if (std::ranges::find(keys, key) == keys.end()) {
      return Error(path + ": " + written + ": is not a setting" + suggested_key(key, keys));
    }
    if (values.contains(key)) {
      return Error(path + ": " + written + ": is set twice, with _ and with -");
    }
    if (const Entry* entry = find(key)) {
      if (const auto checked = entry->setting.form.check(value); !checked) {
        return checked.error().within(path + ": " + written);
      }
      values[key] = value;
    }
  }
  return values;
}

Result<Json> Settings::check_flags(const Flags& flags) const {
  Json values = Json::object();
  for (const auto& [key, text] : flags) {
    if (utf8_length(text) != text.size()) {
      return Error("--" + key + ": expected text in UTF-8");
    }
    const Form& form = at(key).setting.form;
    Json value = value_of_flag(text, form.kind());
    if (const auto checked = form.check(value); !checked) {
      return checked.error().within("--" + key);
    }
    values[key] = std::move(value);
  }
  return values;
}

void Settings::apply_preset(const Json& config, const Json& flags, const std::string& config_path) {
  const std::string name = flags.value("preset", config.value("preset", text("preset")));
  const Preset* preset = find_preset(name);
  const Json values = to_values(*preset);
  apply(values, {Origin::Kind::kPreset, name});
  for (const auto& [key, value] : values.items()) {
    if (flags.contains("preset") && !flags.contains(key) && config.value(key, value) != value) {
      warnings_.push_back(fmt::format("{}: {} = {} wins over --preset {}, which has {}",
                                      config_path, key, config[key].dump(), name, value.dump()));
    }
  }
}

void Settings::apply_recipe(const Json& config, const Json& flags) {
  const auto asked = [&](const char* key, const Json& fallback) {
    return flags.value(key, config.value(key, fallback));
  };
  const std::string name = asked("recipe", text("recipe"));
  if (const Recipe* recipe = find_recipe(name)) {
    apply(to_values(*recipe, asked("epochs", recipe->epochs)), {Origin::Kind::kRecipe, name});
  }
}

// The rates of presets and recipes are for SGD.
void Settings::apply_optimizer(const Json& config, const Json& flags) {
  const std::string name = flags.value("optimizer", config.value("optimizer", text("optimizer")));
  const auto optimizer = value_of(kOptimizerNames, name);
  check(optimizer.has_value(), "an optimiser is a word of its form");
  apply(to_values(*optimizer), {Origin::Kind::kOptimizer, name});
}

void Settings::apply(const Json& values, const Origin& origin) {
  for (Entry& entry : entries_) {
    if (values.contains(entry.setting.key)) {
      entry.value = values[entry.setting.key];
      entry.origin = origin;
    }
  }
}

Result<void> Settings::check_complete() const {
  for (const Entry& entry : entries_) {
    if (entry.value.is_null()) {
      return Error("--" + entry.setting.key + ": is missing: " + entry.setting.help);
    }
  }
  return {};
}

const Settings::Entry* Settings::find(const std::string& key) const {
  const auto found = std::ranges::find(entries_, key, [](const Entry& e) { return e.setting.key; });
  return found == entries_.end() ? nullptr : &*found;
}

const Settings::Entry& Settings::at(const std::string& key) const {
  const Entry* entry = find(key);
  check(entry != nullptr, "the command has no setting " + key);
  return *entry;
}

std::string Settings::text(const std::string& key) const { return at(key).value; }
std::int64_t Settings::integer(const std::string& key) const { return at(key).value; }
double Settings::number(const std::string& key) const { return at(key).value; }
bool Settings::on(const std::string& key) const { return at(key).value; }
bool Settings::is_chosen(const std::string& key) const {
  const Entry& entry = at(key);
  return entry.origin.kind == Origin::Kind::kFlag ||
         (entry.origin.kind == Origin::Kind::kConfig && entry.value != entry.setting.fallback);
}

ChosenSizes Settings::chosen_sizes() const {
  return {.slice = is_chosen("slice"),
          .credit = is_chosen("credit"),
          .peer_credit = is_chosen("peer-credit"),
          .segment = is_chosen("segment"),
          .local_aggregation = is_chosen("local-aggregation")};
}

const Origin& Settings::origin(const std::string& key) const { return at(key).origin; }

std::string Settings::path(const std::string& key, const std::string& prefix) const {
  const std::filesystem::path named = text(key).substr(prefix.size());
  if (origin(key).kind == Origin::Kind::kConfig) {
    const auto beside = std::filesystem::path(origin(key).name).parent_path() / named;
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored)) {
      return beside.string();
    }
  }
  return named.string();
}

Result<void> Settings::refuse(std::initializer_list<const char*> keys,
                              const std::string& why) const {
  for (const char* key : keys) {
    if (origin(key).kind == Origin::Kind::kFlag) {
      return Error(fmt::format("--{}: {}", key, why));
    }
  }
  return {};
}

void Settings::rewrite(const std::string& key, const std::string& text) {
  std::ranges::find(entries_, key, [](const Entry& e) { return e.setting.key; })->value = text;
}

Result<void> Settings::dictate(const std::string& key, std::int64_t value, const std::string& why) {
  Entry& entry = *std::ranges::find(entries_, key, [](const Entry& e) { return e.setting.key; });
  const bool asked = entry.origin.kind != Origin::Kind::kDefault;
  if (asked && entry.value != value) {
    return Error(
        fmt::format("--{}: is {} ({}), but {}", key, entry.value.dump(), entry.origin.text(), why));
  }
  entry.value = value;
  entry.origin = {Origin::Kind::kLaunch};
  return {};
}

Strategy Settings::strategy() const { return to_strategy(values()); }

Json Settings::values() const {
  Json values;
  for (const Entry& entry : entries_) {
    values[entry.setting.key] = entry.value;
  }
  return values;
}

std::string Settings::to_toml(const std::map<std::string, std::string>& copies) const {
  std::string toml;
  for (const Entry& entry : entries_) {
    const std::string& key = entry.setting.key;
    const auto copy = copies.find(key);
    const bool is_copied = copy != copies.end();
    const bool is_place = key == "run" || key == "trace";
    toml += fmt::format(
        "{}{} = {}  # {}{}\n", is_place ? "# " : "", key,
        toml_value(is_copied ? Json(copy->second) : entry.value),
        is_copied ? fmt::format("copy of {}, ", one_line(entry.value.get<std::string>())) : "",
        one_line(entry.origin.text()));
  }
  return toml;
}

}  // namespace sluice::cli
