#pragma once

#include <memory>
#include <optional>
#include <span>

#include "drivers/mpi/mpi_training.h"
#include "drivers/threads/thread_training.h"
#include "nodes/assembly.h"
#include "planner/tuning.h"

// Training on threads or on MPI, whichever it is.
namespace sluice {

// In a world this process runs one host of the job. Measures the links, and has the job suit them.
inline void tune_for_world(MpiWorld* world, Job& job, const ChosenSizes& chosen) {
  if (world == nullptr) {
    return;
  }
  job.here = HostId(world->rank());
  const bool together = job.topology.on_one_machine();
  if (!together) {
    job.link = world->measure_link();
  }
  tune_for_link(job, chosen);
  if (together) {
    tune_sums_for_machine(job);
  }
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

// The signal that stopped it before the end, if one did.
inline std::optional<int> drive(MpiWorld* world, const Phase& phase, const Warn& warn) {
  return world != nullptr ? train_on_mpi(*world, phase, warn) : train_on_threads(phase);
}

}  // namespace sluice
