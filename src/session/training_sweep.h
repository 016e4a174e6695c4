#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/log.h"
#include "session/specs.h"
#include "session/training_session.h"
#include "session/virtual_group.h"

namespace sluice {

// One training on a simulated cluster.
struct VirtualTraining {
  std::string name;  // for errors and warnings
  TrainSpec spec;
  VirtualCluster cluster;
};

// Trainings on simulated clusters, several at a time. Those with the same data share it.
class TrainingSweep {
 public:
  // Checks every training before one runs, and creates their folders. Trains so many at a time, 0:
  // one per core; threads that are left over compute gradients. All compute with the same kernels;
  // where none are given, those that suit the first. An error names its training.
  static Result<TrainingSweep> prepare(std::vector<VirtualTraining> trainings, std::size_t threads,
                                       const Log& log);

  struct Outcome {
    // What simulate --train --json prints for each. The results depend neither on the number of
    // threads nor on the other trainings.
    std::vector<nlohmann::ordered_json> summaries;
    std::optional<int> stopped;  // the signal that ended the sweep early; then there are none
  };
  // `done` gets the number of finished trainings, never two at a time. SIGINT and SIGTERM stop all.
  // Throws if a training fails; what it throws names it.
  Outcome run(const std::function<void(std::size_t finished)>& done);

 private:
  struct Cell {
    std::string name;
    std::unique_ptr<ProcessGroup> group;
    TrainingSession session;
  };

  TrainingSweep(std::vector<Cell> cells, std::size_t at_a_time)
      : cells_(std::move(cells)), at_a_time_(at_a_time) {}

  std::vector<Cell> cells_;
  std::size_t at_a_time_;
};

}  // namespace sluice
