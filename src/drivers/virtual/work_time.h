#pragma once

#include "formats/cluster.h"
#include "protocol/work.h"

namespace sluice {

// How long a host of the cluster is busy with a piece of arithmetic. Where an [allreduce] table
// stands for the network, its cost covers the whole synchronisation and this is nothing.
Duration work_time(const Work& work, const Cluster& cluster);

}  // namespace sluice
