#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/id.h"
#include "session/process_group.h"

namespace sluice {

// That a process of the run was lost.
struct LostRank {
  std::size_t rank = 0;
  std::uint32_t life = 0;  // how often it had come back before
  double after_s = 0;      // from the begin of training
  std::string why;
};

// From this iteration on sums were of so many workers, since one was lost, or is back.
struct Regrouped {
  Iteration iteration = 0;
  std::size_t workers = 0;
};

// What has become of the processes of a run so far. Who joins it is told, since it may lead later.
struct History {
  std::vector<LostRank> losses;
  std::vector<std::size_t> joined;  // ranks that were lost and came back
  std::vector<Regrouped> regrouped;
};

nlohmann::ordered_json json_of(const History& history);
// Throws if the text is not of a history.
History history_from(const nlohmann::json& json);

// Adds the losses that the group knows of, and that are not there yet.
void add_losses(const ProcessGroup& group, Time now, History& history);

}  // namespace sluice
