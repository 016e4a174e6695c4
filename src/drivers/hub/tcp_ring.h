#pragma once

#include "drivers/processes/process_world.h"
#include "formats/link_cost.h"

namespace sluice {

// ProcessWorld::measure_link() over connections made for it. Collective.
LinkCost measure_link_over_tcp(ProcessWorld& world);

}  // namespace sluice
