#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/layer.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// Names in reports and traces.
std::string_view name_of(MessageKind kind);
std::string_view name_of(WorkKind kind);
// "worker 0", "server 2".
std::string name_of(NodeId node, const Topology& topology);

using ChunkNames = std::function<std::string(ChunkId)>;
// "conv1" for a whole layer, "conv1/3" for its fourth slice, "conv1..fc2" for several layers.
ChunkNames chunk_names(const std::vector<Layer>& layers, const ChunkMap& chunks);

}  // namespace sluice
