#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cli/settings.h"
#include "drivers/mpi/mpi_world.h"
#include "session/journal.h"
#include "session/record.h"
#include "session/training.h"
#include "session/workload.h"

namespace sluice {

// A training that has come to its end.
struct TrainingRun {
  const cli::Settings& settings;
  const Workload& work;
  const std::string& kernels;  // that a real model computed with
  const Trained& trained;
  std::span<const float> parameters;
  const Record& record;
  const Journal& journal;
  const std::string& stopped;  // by what and when; empty if it has come to its end
};

nlohmann::ordered_json training_summary(const TrainingRun& run);
// The sizes that went by the network, what was measured of it, and how MPI was asked to carry long
// messages; `world` is null without MPI.
nlohmann::ordered_json network_summary(const Job& job, const MpiWorld* world);

std::string parameters_hash(std::span<const float> parameters);

}  // namespace sluice
