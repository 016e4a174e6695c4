#include "cli/restart_count.h"

#include "formats/checkpoint.h"

namespace sluice::cli {

std::optional<Iteration> newest_checkpoint(const std::string& folder) {
  if (folder.empty()) {
    return std::nullopt;
  }
  const auto iterations = CheckpointFolder(folder).iterations();
  return iterations.empty() ? std::nullopt : std::optional(iterations.front());
}

bool RestartCount::take(std::optional<Iteration> newest) {
  if (newest > newest_) {
    newest_ = newest;
    taken_ = 0;
  }
  if (taken_ == most_) {
    return false;
  }
  ++taken_;
  return true;
}

std::string checkpoints_of(const std::vector<std::string>& command) {
  const std::string flag = "--checkpoint";
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == flag && i + 1 < command.size()) {
      return command[i + 1];
    }
    if (command[i].starts_with(flag + "=")) {
      return command[i].substr(flag.size() + 1);
    }
  }
  return "";
}

}  // namespace sluice::cli
