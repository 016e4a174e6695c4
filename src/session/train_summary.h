#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "session/journal.h"
#include "session/process_group.h"
#include "session/record.h"
#include "session/specs.h"
#include "session/training.h"
#include "session/workload.h"

namespace sluice {

// A training run that has ended.
struct FinishedRun {
  const TrainSpec& spec;
  const Workload& work;
  const std::string& kernels;  // of a real model
  const Trained& trained;
  std::span<const float> parameters;
  const Record& record;
  const Journal& journal;
  const std::string& stopped;  // by what and when; empty if it ran to its end
};

nlohmann::ordered_json training_summary(const FinishedRun& run);
// The sizes that were tuned to the network, what was measured of it, and how MPI was asked to carry
// long messages.
nlohmann::ordered_json network_summary(const Job& job, const NetworkFacts& facts);

std::string parameters_hash(std::span<const float> parameters);

}  // namespace sluice
