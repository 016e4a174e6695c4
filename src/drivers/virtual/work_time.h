#pragma once

#include "formats/cluster.h"
#include "protocol/work.h"

namespace sluice {

// How long a host of the cluster is busy with a unit of arithmetic. With an [allreduce] table the
// result is zero, since its cost covers the whole synchronisation.
Duration work_time(const Work& work, const Cluster& cluster);

}  // namespace sluice
