#pragma once

#include <vector>

#include "formats/profile.h"
#include "model/layer.h"
#include "protocol/observer.h"

namespace sluice {

// Watches training and tells what an iteration is made of. The first iteration it sees is not
// counted: caches are cold and threads have just begun.
class LayerTimes final : public Observer {
 public:
  LayerTimes(std::size_t workers, std::size_t layers) : workers_(workers, Seen(layers)) {}

  void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                Time end) override;
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message&, Time, Time) override {}
  void received(const Message&, Time, Time) override {}
  void worked(const Work&, Time, Time) override {}

  // All are for when nothing is in flight, and zero or empty where fewer than three iterations were
  // seen.

  // Forward and backward of each layer, mean over workers and iterations.
  Profile profile(const std::vector<Layer>& layers) const;
  // Start of forward to start of forward on the first worker that was seen, and the median of it.
  std::vector<Duration> iterations() const;
  Duration iteration() const;

 private:
  struct Sum {
    Duration time{0};
    std::int64_t count = 0;
  };
  // Written by the worker's own thread only.
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
