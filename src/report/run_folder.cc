#include "report/run_folder.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"

namespace sluice {
namespace fs = std::filesystem;

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

Result<void> RunFolder::write_config(const std::string& toml) const {
  return write_file(file("config.toml"), toml);
}

Result<void> RunFolder::append_metrics(const nlohmann::ordered_json& row) {
  const fs::path path = file("metrics.jsonl");
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
