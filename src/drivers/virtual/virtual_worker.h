#pragma once

#include <utility>
#include <vector>

#include "base/id.h"
#include "formats/profile.h"
#include "protocol/observer.h"

namespace sluice {

// A worker's training loop in virtual time: forward through the layers as they are released,
// backward without a pause. It begins with iteration `first` and stops at the start of iteration
// `iterations`.
class VirtualWorker {
 public:
  struct Step {
    Pass pass;
    LayerId layer;
    Duration length;
  };

  VirtualWorker(const Profile& profile, Iteration first, Iteration iterations)
      : profile_(&profile),
        iterations_(iterations),
        released_(profile.layers.size(), first - 1),
        waits_for_(profile.layers.size()),
        iteration_(first) {}

  Iteration iteration() const { return iteration_; }
  Iteration iterations() const { return iterations_; }
  bool finished() const { return iteration_ == iterations_; }

  void release(LayerId layer, Iteration iteration);
  // Whether all layers of the current iteration are released: its parameters are in, and nobody
  // changes them before its gradients are ready.
  bool has_all_parameters() const { return waits_for_ == 0; }
  // True once: it has the parameters after its last iteration.
  bool ends() { return finished() && has_all_parameters() && !std::exchange(ended_, true); }
  // Ends at this iteration, which has not begun here, instead.
  void end_at(Iteration iteration) { iterations_ = iteration; }
  // Whether a step can begin now; not while the next layer waits for its release.
  bool can_begin() const;
  // The layer and pass that comes next.
  Step next() const;
  // The step returned by next() is over.
  void advance();
  bool at_start_of_iteration() const { return forward_ && position_ == 0; }

 private:
  const Profile* profile_;
  Iteration iterations_;
  std::vector<Iteration> released_;  // by layer
  std::size_t waits_for_;            // layers that are not released for the current iteration
  std::size_t ahead_ = 0;            // layers that are released for the next one
  Iteration iteration_;
  bool forward_ = true;
  std::size_t position_ = 0;  // index of the layer
  bool ended_ = false;
};

}  // namespace sluice
