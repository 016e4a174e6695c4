#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/job.h"
#include "session/codec_choice.h"

namespace sluice::cli {

// What the settings of simulate describe: a job on a cluster.
struct SimulatedSetup {
  Profile profile;
  Cluster cluster;
  Job job;
  std::string preset;
  Iteration iterations = 0;
  std::vector<double> slowdowns;   // by the workers' shares of the batch; see Simulation
  std::vector<std::string> notes;  // for the user
  std::optional<CodecChoice> codec_choice = {};  // if there is a codec, or one to be chosen
};

// `cluster_values` win over those of the cluster's file. Errors name the flag, or the file and key.
Result<SimulatedSetup> simulated_setup(const Settings& settings,
                                       const Json& cluster_values = Json::object());

// The summary of its steady iterations, without a training.
nlohmann::ordered_json steady_summary(const SimulatedSetup& setup);

}  // namespace sluice::cli
