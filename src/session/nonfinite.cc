#include "session/nonfinite.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/check.h"

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

std::string Divergence::why(const std::vector<Layer>& layers, std::optional<int> stopped,
                            std::optional<double> last_loss) const {
  if (const auto found = first()) {
    return describe(*found, layers);
  }
  const bool is_there = stopped == kDivergedSignal || (last_loss && !std::isfinite(*last_loss));
  return is_there ? "a loss or a gradient is not finite" : "";
}

OnNonFinite on_nonfinite(NonFiniteAction action, const std::vector<Layer>& layers,
                         std::function<void(const std::string&)> warn, Divergence& divergence) {
  switch (action) {
    case NonFiniteAction::kWarn:
      return warn_of_nonfinite(layers, std::move(warn));
    case NonFiniteAction::kEnd:
      return [&divergence](const NonFinite& found) { divergence.note(found); };
    case NonFiniteAction::kStop:
      return stop_on_nonfinite(layers,
                               "try a lower --lr or a longer --warmup-epochs, or continue anyway "
                               "with --on-nonfinite warn");
  }
  fail_check("there is no such action");
}

}  // namespace sluice
