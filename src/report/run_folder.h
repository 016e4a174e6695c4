#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace sluice {

// The record of one run, real or simulated: config.toml, metrics.jsonl, summary.json, and any other
// files at file().
class RunFolder {
 public:
  // Creates the folder and its parents. An existing folder must be empty.
  static Result<RunFolder> create(const std::filesystem::path& path);

  // One that another process has created for the same run, if this one sees it.
  static std::optional<RunFolder> find(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  Result<void> write_config(const std::string& toml) const;
  // Writes one line of metrics.jsonl; it is in the file when the call returns.
  Result<void> append_metrics(const nlohmann::ordered_json& row);
  Result<void> write_summary(const nlohmann::ordered_json& summary) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::ofstream metrics_;  // opened at the first row
};

}  // namespace sluice
