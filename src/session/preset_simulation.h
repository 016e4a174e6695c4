#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "formats/cluster.h"
#include "formats/profile.h"

namespace sluice {

// What `sluice simulate --json` prints for a preset without further settings, over this number of
// iterations. `trace` is the file for a Chrome trace; empty: none.
Result<nlohmann::ordered_json> simulate_preset(const std::string& preset, const Profile& profile,
                                               const Cluster& cluster, Iteration iterations,
                                               const std::string& trace);

}  // namespace sluice
