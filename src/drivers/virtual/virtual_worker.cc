#include "drivers/virtual/virtual_worker.h"

#include "base/check.h"

namespace sluice {

void VirtualWorker::release(LayerId layer, Iteration iteration) {
  Iteration& released = released_[layer.index()];
  check(iteration == released + 1, "a layer is released once per iteration, in order");
  released = iteration;
  if (iteration == iteration_) {
    --waits_for_;
  } else {
    ++ahead_;
  }
}

bool VirtualWorker::can_begin() const {
  if (!forward_) {
    return true;
  }
  check(released_[position_] <= iteration_, "no layer runs on parameters of a later iteration");
  return released_[position_] == iteration_;
}

VirtualWorker::Step VirtualWorker::next() const {
  const LayerProfile& layer = profile_->layers[position_];
  return {forward_ ? Pass::kForward : Pass::kBackward, LayerId(position_),
          forward_ ? layer.forward : layer.backward};
}

void VirtualWorker::advance() {
  if (forward_) {
    if (position_ + 1 < profile_->layers.size()) {
      ++position_;
    } else {
      forward_ = false;
    }
  } else if (position_ > 0) {
    --position_;
  } else {
    forward_ = true;
    ++iteration_;
    waits_for_ = released_.size() - ahead_;
    ahead_ = 0;
  }
}

}  // namespace sluice
