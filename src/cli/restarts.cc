#include "cli/restarts.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/restart_count.h"
#include "formats/checkpoint.h"

namespace sluice::cli {
namespace {

std::optional<Iteration> newest_in(const std::string& checkpoints) {
  if (checkpoints.empty()) {
    return std::nullopt;
  }
  const auto iterations = CheckpointFolder(checkpoints).iterations();
  return iterations.empty() ? std::nullopt : std::optional(iterations.front());
}

std::string newest_text(const std::string& checkpoints, std::optional<Iteration> newest) {
  if (checkpoints.empty()) {
    return "it has no --checkpoint, so all is lost";
  }
  return newest ? fmt::format("the newest checkpoint is that of iteration {}", *newest)
                : "there is no checkpoint yet";
}

}  // namespace

int run_with_restarts(const RunJob& run, std::int64_t most, const std::string& checkpoints) {
  RestartCount count(most, newest_in(checkpoints));
  for (std::int64_t restart = 0;; ++restart) {
    const Ending ending = run(restart);
    if (ending.code == 0 || ending.code == kBadInput || ending.code == kNotFound ||
        ending.signal != 0) {
      return ending.code;
    }
    const auto newest = newest_in(checkpoints);
    const std::string what = fmt::format("launch: the job ended with code {}; {}", ending.code,
                                         newest_text(checkpoints, newest));
    if (!count.take(newest)) {
      failed(Error(fmt::format("{}; given up after {} restart{} without a new one", what, most,
                               most == 1 ? "" : "s")));
      return ending.code;
    }
    warn(fmt::format("{}; starting again ({} of {})", what, count.taken(), count.most()));
  }
}

}  // namespace sluice::cli
