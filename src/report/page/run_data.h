#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/time_line.h"

namespace sluice {

// One setting of a run, as config.toml has it.
struct RunSetting {
  std::string key;
  std::string value;
  std::string origin;  // such as "from flag"; empty if the file does not say

  bool operator==(const RunSetting&) const = default;
};

struct RunStep {
  double step = 0;
  double samples = 0;
  double seconds = 0;
  std::optional<double> loss = {};  // none in a replay
};

struct RunEvaluation {
  double step = 0;
  double epoch = 0;
  double seconds = 0;
  double loss = 0;
  double accuracy = 0;
};

// What a link of an emulated cluster has carried so far.
struct LinkSample {
  double seconds = 0;
  std::size_t host = 0;
  double received = 0;  // bytes
  double sent = 0;
};

// The record of a run as it lies in its folder.
struct RunData {
  std::string name;
  nlohmann::json summary;
  std::vector<RunSetting> settings;
  std::vector<RunStep> steps;
  std::vector<RunEvaluation> evaluations;
  std::vector<LinkSample> links;
  std::optional<TimeLine> time_line;

  // A number of the summary; the keys lead to it. JSON has no NaN, so that it may be a text.
  std::optional<double> number(std::initializer_list<const char*> keys) const;
  // Empty if the summary has no such text.
  std::string text(std::initializer_list<const char*> keys) const;
  bool is_virtual() const { return text({"clock"}) == "virtual"; }
  bool has_diverged() const { return !text({"diverged"}).empty(); }
};

// Errors name the file, and say what to do.
Result<RunData> read_run(const std::filesystem::path& folder);

// The parts of it, from the texts of the files.
std::vector<RunSetting> settings_from(const std::string& toml);
Result<void> read_metrics(const std::string& lines, RunData& run);
Result<std::vector<LinkSample>> links_from(const std::string& csv);

}  // namespace sluice
