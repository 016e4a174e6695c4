#pragma once

#include <vector>

#include "formats/profile.h"
#include "model/layer.h"
#include "protocol/observer.h"

namespace sluice {

// Watches training and reports where the time of an iteration goes. Skips the first iteration it
// sees: caches are cold and threads have just started.
class LayerTimes final : public Observer {
 public:
  LayerTimes(std::size_t workers, std::size_t layers) : workers_(workers, Seen(layers)) {}

  void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                Time end) override;
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message&, Time, Time) override {}
  void received(const Message&, Time, Time) override {}
  void worked(const Work&, Time, Time) override {}

  // Call these only when nothing is in flight. The results are zero or empty if fewer than three
  // iterations were seen.

  // Forward and backward times per layer, as means over workers and iterations.
  Profile profile(const std::vector<Layer>& layers) const;
  // From start of forward to start of forward on the first worker seen; then the median.
  std::vector<Duration> iterations() const;
  Duration iteration() const;

 private:
  struct Sum {
    Duration time{0};
    std::int64_t count = 0;
  };
  // Only the worker's own thread writes it.
  struct Seen {
    explicit Seen(std::size_t layers) : forward(layers), backward(layers) {}

    std::vector<Sum> forward;   // by layer
    std::vector<Sum> backward;  // by layer
    std::vector<Time> starts;   // of the iterations
    Iteration latest = -1;
  };

  Duration mean(std::size_t layer, std::vector<Sum> Seen::*pass) const;

  std::vector<Seen> workers_;
};

}  // namespace sluice
