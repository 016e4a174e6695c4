#pragma once

#include "formats/document.h"
#include "model/job.h"

namespace sluice {

// A measured link, for processes and runs that have not measured it.
Json json_of(const LinkCost& link);
// Throws if it is no such text.
LinkCost link_cost_from(const Json& json);

}  // namespace sluice
