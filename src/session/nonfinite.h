#pragma once

#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "drivers/realtime/phase.h"
#include "model/layer.h"
#include "session/specs.h"

namespace sluice {

// What was found, and where. Iterations count from 1, as steps do in the metrics.
std::string describe(const NonFinite& found, const std::vector<Layer>& layers);

// Ends the run. `advice` says what to set so that it continues.
OnNonFinite stop_on_nonfinite(std::vector<Layer> layers, std::string advice);
// Warns once per rank and lets the run continue. May be called from any thread.
OnNonFinite warn_of_nonfinite(std::vector<Layer> layers,
                              std::function<void(const std::string&)> warn);

// By this a run that diverges asks itself to stop, like by a signal from outside.
inline constexpr int kDivergedSignal = SIGFPE;

// The first value of a run that is not finite. From any thread.
class Divergence {
 public:
  void note(const NonFinite& found);
  std::optional<NonFinite> first() const;
  // What was not finite: as noted, or as the end of the run shows, if it was in another process or
  // nobody noted it; empty if nothing was.
  std::string why(const std::vector<Layer>& layers, std::optional<int> stopped,
                  std::optional<double> last_loss) const;

 private:
  mutable std::mutex mutex_;
  std::optional<NonFinite> first_;
};

// What to do with a value that is not finite; `divergence` must outlive it.
OnNonFinite on_nonfinite(NonFiniteAction action, const std::vector<Layer>& layers,
                         std::function<void(const std::string&)> warn, Divergence& divergence);

}  // namespace sluice
