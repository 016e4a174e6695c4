#pragma once

#include "model/job.h"

namespace sluice {

// Whether an iteration is predicted to take less of the busiest machine if the workers of each
// machine add their gradients before one of them exchanges the sum for all (local aggregation):
// less of its link, and not as much of the worker that adds. False where there is nothing to add,
// or where local aggregation is not possible.
bool aggregation_pays(const Job& job);

}  // namespace sluice
