#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "data/sharding.h"

namespace sluice {

// How long a training run is, and how many samples a step takes.
struct Extent {
  static constexpr Iteration kOpenWarmUp = 5;  // of a run whose length is not known

  std::size_t workers = 1;
  std::int64_t batch = 1;  // of each worker, at most
  Iteration iterations = 0;
  Iteration first = 0;                 // of a run that goes on from a checkpoint
  std::vector<Iteration> starts = {};  // by worker, where they do not all begin with that
  Iteration per_epoch = 1;
  std::int64_t samples_per_epoch = 1;  // of all workers
  std::optional<Sharding> sharding{};  // none: all batches have the same size
  std::int64_t epochs_evaluated = 1;   // the model is, each time after so many; 0: only at the end
  // A program takes steps as long as it likes: it has no epochs, and its batch may be 0, unknown.
  bool is_open = false;

  static Extent open(std::size_t workers, std::int64_t batch) {
    Extent extent{.workers = workers, .batch = batch};
    extent.samples_per_epoch = static_cast<std::int64_t>(workers) * batch;
    extent.is_open = true;
    return extent;
  }

  // How many workers do this iteration in this run.
  std::size_t workers_in(Iteration iteration) const {
    const auto begins = [&](Iteration start) { return start <= iteration; };
    return starts.empty() ? workers
                          : static_cast<std::size_t>(std::ranges::count_if(starts, begins));
  }
  // The samples of an iteration, at most.
  std::int64_t joined_batch() const { return static_cast<std::int64_t>(workers) * batch; }
  // From now on an epoch has so many iterations, each with as many samples as before.
  void count_epochs_of(Iteration iterations_per_epoch) {
    samples_per_epoch =
        std::llround(samples_per_iteration() * static_cast<double>(iterations_per_epoch));
    per_epoch = iterations_per_epoch;
  }

  // The model is evaluated after each so many iterations; 0: only at the end.
  Iteration evaluate_every() const { return epochs_evaluated * per_epoch; }

  Iteration iterations_in(double epochs) const {
    return std::llround(epochs * static_cast<double>(per_epoch));
  }
  double epochs_in(Iteration iterations) const {
    return static_cast<double>(iterations) / static_cast<double>(per_epoch);
  }
  std::int64_t epoch_of(Iteration iteration) const { return iteration / per_epoch + 1; }
  // Reported times start at this iteration: earlier ones may be warm-up.
  Iteration steady_from() const { return is_open ? kOpenWarmUp : first + (iterations - first) / 2; }
  // The time line of a run starts here, and has four iterations.
  Iteration shown_from() const {
    return is_open ? kOpenWarmUp : std::max(first, std::min(steady_from(), iterations - 4));
  }
  // The number of samples that all workers learn from in this iteration.
  std::int64_t samples_of(Iteration iteration) const {
    return sharding ? sharding->samples_of(iteration) : samples_per_epoch / per_epoch;
  }
  double samples_per_iteration() const {
    return static_cast<double>(samples_per_epoch) / static_cast<double>(per_epoch);
  }
};

}  // namespace sluice
