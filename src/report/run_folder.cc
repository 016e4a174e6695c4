#include "report/run_folder.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"

namespace sluice {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfig = "config.toml";
constexpr const char* kMetrics = "metrics.jsonl";

}  // namespace

Result<RunFolder> RunFolder::create(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  const bool empty = !failed && fs::is_empty(path, failed);
  if (failed) {
    return Error(path.string() + ": the run's folder cannot be created: " + failed.message());
  }
  if (!empty) {
    return Error(path.string() +
                 ": is not empty, and a run does not overwrite another; name a new folder with "
                 "--run, or remove this one");
  }
  return RunFolder(path);
}

// A process that was killed may have written a part of its last row.
std::optional<RunFolder> RunFolder::find(const fs::path& path) {
  RunFolder folder(path);
  std::error_code none;
  if (!fs::exists(folder.file(kConfig), none)) {
    return std::nullopt;
  }
  if (const auto rows = read_file(folder.file(kMetrics))) {
    fs::resize_file(folder.file(kMetrics), rows->rfind('\n') + 1, none);
  }
  return folder;
}

Result<void> RunFolder::write_config(const std::string& toml) const {
  return write_file(file(kConfig), toml);
}

Result<void> RunFolder::append_metrics(const nlohmann::ordered_json& row) {
  const fs::path path = file(kMetrics);
  if (!metrics_.is_open()) {
    metrics_.open(path, std::ios::app);
  }
  metrics_ << row.dump() << "\n" << std::flush;
  if (!metrics_) {
    return Error(path.string() + ": cannot be written; is the disk full?");
  }
  return {};
}

Result<void> RunFolder::write_summary(const nlohmann::ordered_json& summary) const {
  return write_file(file("summary.json"), summary.dump(2) + "\n");
}

}  // namespace sluice
