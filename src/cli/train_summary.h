#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cli/console.h"
#include "cli/journal.h"
#include "cli/record.h"
#include "cli/settings.h"
#include "cli/training.h"
#include "cli/workload.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice::cli {

// A training that has come to its end.
struct TrainingRun {
  const Settings& settings;
  const Workload& work;
  const std::string& kernels;  // that a real model computed with
  const Trained& trained;
  std::span<const float> parameters;
  const Record& record;
  const Journal& journal;
};

OrderedJson training_summary(const TrainingRun& run);
// The sizes that went by the network, what was measured of it, and how MPI was asked to carry long
// messages; `world` is null without MPI.
OrderedJson network_summary(const Job& job, const MpiWorld* world);
void print_training(const OrderedJson& summary, const std::string& folder);

std::string parameters_hash(std::span<const float> parameters);

}  // namespace sluice::cli
