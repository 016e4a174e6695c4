#pragma once

#include <nlohmann/json.hpp>
#include <optional>
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
  const std::string& stopped;   // by what and when; empty if it ran to its end
  const std::string& diverged;  // what was not finite; empty if it did not diverge
  const NetworkFacts& network;
  const std::optional<NetworkUse> use;    // of a simulated network
  const nlohmann::ordered_json& loading;  // of loading_of(); null in a replay
};

nlohmann::ordered_json training_summary(const FinishedRun& run);

// A program's own training loop that has ended: see Extent::open().
struct FinishedLoop {
  const std::string& preset;
  const std::string& name;
  const Extent& extent;
  const Assembly& assembly;
  const Counters& counters;  // of all processes
  const Record& record;
  const Journal& journal;
  const NetworkFacts& network;
};

nlohmann::ordered_json loop_summary(const FinishedLoop& run);

// What a model was computed with, and what came out.
void add_task(const TorchTask& task, const std::string& kernels, nlohmann::ordered_json& summary);
void add_evaluation(const std::optional<Evaluation>& evaluation, nlohmann::ordered_json& summary);

std::string parameters_hash(std::span<const float> parameters);

}  // namespace sluice
