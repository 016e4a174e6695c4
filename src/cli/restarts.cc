#include "cli/restarts.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/restart_count.h"
#include "drivers/realtime/clock.h"

namespace sluice::cli {
namespace {

std::string newest_text(const std::string& checkpoints, std::optional<Iteration> newest) {
  if (checkpoints.empty()) {
    return "it has no --checkpoint, so all is lost";
  }
  return newest ? fmt::format("the newest checkpoint is that of iteration {}", *newest)
                : "there is no checkpoint yet";
}

// What the next starts are told.
class EarlierStarts {
 public:
  void add(const Ending& ending, Duration lasted, std::optional<Iteration> newest) {
    nlohmann::json start{
        {"why",
         ending.why.empty() ? fmt::format("it ended with code {}", ending.code) : ending.why},
        {"after_s", to_seconds(lasted)}};
    if (newest) {
      start["checkpoint"] = *newest;
    }
    all_.push_back(std::move(start));
    if (all_.size() > kMost) {
      all_.erase(0);
    }
    setenv(kEarlierStartsVariable, all_.dump().c_str(), 1);
  }

 private:
  static constexpr std::size_t kMost = 100;  // the last ones: an environment is small

  nlohmann::json all_ = nlohmann::json::array();
};

}  // namespace

int run_with_restarts(const RunJob& run, std::int64_t most, const std::string& checkpoints) {
  RestartCount count(most, newest_checkpoint(checkpoints));
  EarlierStarts earlier;
  for (std::int64_t restart = 0;; ++restart) {
    const Clock clock;
    const Ending ending = run(restart);
    if (ending.code == 0 || ending.code == kBadInput || ending.code == kNotFound ||
        ending.signal != 0) {
      return ending.code;
    }
    const auto newest = newest_checkpoint(checkpoints);
    const std::string what = fmt::format("launch: the job ended with code {}; {}", ending.code,
                                         newest_text(checkpoints, newest));
    if (!count.take(newest)) {
      failed(Error(fmt::format("{}; given up after {} restart{} without a new one", what, most,
                               most == 1 ? "" : "s")));
      return ending.code;
    }
    warn(fmt::format("{}; starting again ({} of {})", what, count.taken(), count.most()));
    earlier.add(ending, clock.now(), newest);
  }
}

}  // namespace sluice::cli
