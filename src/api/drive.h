#pragma once

#include <optional>

#include "algorithms/assembly.h"
#include "algorithms/suit.h"
#include "runtime/mpi/mpi_training.h"
#include "runtime/threads/thread_training.h"

// Training on threads or on MPI, whichever it is.
namespace sluice {

// Measures the links of the world, if there is one, and has the job suit them.
inline void suit_to_world(MpiWorld* world, Job& job, const ChosenSizes& chosen) {
  if (world == nullptr) {
    return;
  }
  if (!job.topology.on_one_machine()) {
    job.link = world->measure_link();
  }
  suit_to_network(job, chosen);
  suit_sums_to_machine(job);
}

// The numbers of the workers in this process and of the servers beside them. Without a world all
// workers are here.
inline TrainingState state_of(const MpiWorld* world, const Assembly& assembly,
                              std::span<const std::unique_ptr<Learner>> learners,
                              const UpdateRule& rule) {
  return {assembly.job.topology,
          learners,
          *assembly.chunks,
          assembly.job.strategy,
          rule,
          world != nullptr ? std::optional(HostId(world->rank())) : std::nullopt};
}

inline void drive(MpiWorld* world, const Stretch& stretch, const Warn& warn) {
  if (world != nullptr) {
    train_on_mpi(*world, stretch, warn);
  } else {
    train_on_threads(stretch);
  }
}

}  // namespace sluice
