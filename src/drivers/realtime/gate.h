#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "base/check.h"
#include "base/id.h"

namespace sluice {

// The run was cancelled while this thread waited for parameters.
class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("the run was cancelled") {}
};

// Where a worker's forward pass waits for its layers.
class Gate {
 public:
  // Nothing is released yet; the first release is for iteration `first`.
  explicit Gate(std::size_t layers, Iteration first = 0)
      : position_{LayerId(0), first}, released_(layers, first - 1) {}

  void release(LayerId layer, Iteration iteration) {
    {
      const std::lock_guard lock(mutex_);
      Iteration& released = released_[layer.index()];
      check(iteration == released + 1, "a layer is released once per iteration, in order");
      released = iteration;
      ++releases_;
    }
    changed_.notify_all();
  }

  // True if the layer was released already. If it was not, does `work`, now and whenever another
  // layer has been released.
  bool wait(LayerId layer, Iteration iteration, const std::function<void()>& work = {}) {
    std::unique_lock lock(mutex_);
    const Position place{layer, iteration, true};
    position_ = place;
    const auto here = [&] { return cancelled_ || released_[layer.index()] >= iteration; };
    const bool at_once = here();
    while (work && !here()) {
      const std::uint64_t known = releases_;
      lock.unlock();
      work();  // may wait for layers, too
      lock.lock();
      position_ = place;
      changed_.wait(lock, [&] { return here() || releases_ != known; });
    }
    changed_.wait(lock, here);
    position_.waiting = false;
    if (cancelled_) {
      throw Cancelled();
    }
    check(released_[layer.index()] == iteration,
          "no layer runs on parameters of a later iteration");
    return at_once;
  }

  bool released(LayerId layer, Iteration iteration) const {
    const std::lock_guard lock(mutex_);
    return released_[layer.index()] >= iteration;
  }

  // Where the worker is: the layer whose forward pass it began last, or is waiting to begin.
  struct Position {
    LayerId layer;
    Iteration iteration = 0;
    bool waiting = false;

    bool operator==(const Position&) const = default;
  };
  Position position() const {
    const std::lock_guard lock(mutex_);
    return position_;
  }

  void wait_for_all(Iteration iteration) {
    for (std::size_t l = 0; l < released_.size(); ++l) {
      wait(LayerId(l), iteration);
    }
  }

  void cancel() {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Position position_;
  std::vector<Iteration> released_;  // by layer
  std::uint64_t releases_ = 0;       // of all layers
  bool cancelled_ = false;
};

using Gates = std::map<NodeId, Gate>;  // by worker

}  // namespace sluice
