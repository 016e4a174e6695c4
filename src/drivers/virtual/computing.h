#pragma once

#include <cstddef>
#include <functional>

namespace sluice {

// Where the steps of virtual workers are computed. A worker has one step at a time. Steps of
// different workers share nothing, so they may run at the same time and in any order.
class Computing {
 public:
  using Step = std::function<void()>;

  virtual ~Computing() = default;

  // The step runs at some moment before finish() returns, on any thread.
  virtual void begin(std::size_t worker, Step step) = 0;
  // Returns when the worker's step is done. Throws what it has thrown.
  virtual void finish(std::size_t worker) = 0;
};

// Runs every step when it begins.
class ComputeAtOnce final : public Computing {
 public:
  void begin(std::size_t /*worker*/, Step step) override { step(); }
  void finish(std::size_t /*worker*/) override {}
};

}  // namespace sluice
