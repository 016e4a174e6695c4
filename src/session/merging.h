#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/units.h"
#include "nodes/assembly.h"
#include "partition/merge.h"
#include "planner/merged_training.h"
#include "report/table.h"

namespace sluice {

// The plan of a run with partition merged, and how it worked out.
struct Merging {
  std::vector<std::string> groups;  // in the order of sending
  StreamCost cost;
  MergedAs as = MergedAs::kMerged;
  Duration predicted{0};
  Duration iteration{0};  // as measured
  int replans = 0;
};

// The groups of the assembly's layers, by name.
std::vector<std::string> groups_of(const Assembly& assembly);
Merging merging_of(const MergeOutcome& outcome, const Assembly& assembly);
// What one process has decided, for the others.
std::string text_of(const MergePolicy::Decision& decision);
MergePolicy::Decision decision_from(const std::string& text);
nlohmann::ordered_json to_json(const Merging& merging);
// Adds it to a table of two columns.
void add_rows(const nlohmann::ordered_json& merging, Table& table);

}  // namespace sluice
