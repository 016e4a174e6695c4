#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.h"
#include "nodes/assembly.h"
#include "optimizers/update_rule.h"
#include "session/extent.h"
#include "session/specs.h"

namespace sluice {

// The base learning rate of the schedule.
double learning_rate_of(const OptimizerSpec& spec, const Extent& extent);

// The iterations over which the learning rate rises.
Iteration warmup_of(const OptimizerSpec& spec, const Extent& extent);

// Converts the epochs of the spec to iterations of this run.
UpdateRule rule_of(const OptimizerSpec& spec, const Extent& extent);

// What the optimiser remembers takes so many bytes on each host.
std::vector<Bytes> state_bytes(const UpdateRule& rule, const Assembly& assembly);

// The memory that an update reads and writes, compared with that of SGD.
double update_traffic(const UpdateRule& rule);

// For the record: the optimiser, its hyper-parameters, its state, schedule and clipping.
nlohmann::ordered_json optimizer_summary(const UpdateRule& rule, const Assembly& assembly);

}  // namespace sluice
