#include "session/nonfinite.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

namespace sluice {

std::string describe(const NonFinite& found, const std::vector<Layer>& layers) {
  return fmt::format(
      "rank {}: {} is not finite in iteration {}", found.rank,
      found.layer ? fmt::format("the gradient of layer {}", layers[found.layer->index()].name)
                  : "the loss",
      found.iteration + 1);
}

OnNonFinite stop_on_nonfinite(std::vector<Layer> layers, std::string advice) {
  return [layers = std::move(layers), advice = std::move(advice)](const NonFinite& found) {
    throw std::runtime_error(describe(found, layers) +
                             ": training diverges, or the data are not finite; " + advice);
  };
}

OnNonFinite warn_of_nonfinite(std::vector<Layer> layers,
                              std::function<void(const std::string&)> warn) {
  struct Said {
    std::mutex mutex;
    std::set<std::size_t> ranks;
  };
  return [layers = std::move(layers), warn = std::move(warn),
          said = std::make_shared<Said>()](const NonFinite& found) {
    const std::lock_guard lock(said->mutex);
    if (said->ranks.insert(found.rank).second) {
      warn(describe(found, layers) + "; the run continues, without further warnings for this rank");
    }
  };
}

void Divergence::note(const NonFinite& found) {
  const std::lock_guard lock(mutex_);
  if (!first_) {
    first_ = found;
  }
}

std::optional<NonFinite> Divergence::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

}  // namespace sluice
