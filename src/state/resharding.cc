#include "state/resharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "model/aggregation_groups.h"
#include "state/saved_state.h"

namespace sluice {
namespace {

constexpr const char* kParameters = "parameters";
// Of updates; one value, which the next ones replace.
constexpr const char* kClipFactor = "clip_factor";
constexpr std::string_view kLearner = "learner.";

// What packing has lost.
bool is_residual(const std::string& name) {
  return name == "residual" || name == "powersgd.residual";
}

Error unknown(const StoredTensor& tensor) {
  return Error(tensor.name + " is nothing that this run has");
}

Result<std::vector<float>> floats_in(const StoredTensor& tensor, std::int64_t expected) {
  const auto bytes = static_cast<std::size_t>(expected) * sizeof(float);
  if (tensor.type != ElementType::kFloat32 || tensor.bytes.size() != bytes) {
    return Error(fmt::format("{} has {} bytes, and should have {}", tensor.name,
                             tensor.bytes.size(), bytes));
  }
  std::vector<float> values(static_cast<std::size_t>(expected));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor.bytes.data(), bytes);
  }
  return values;
}

std::vector<Range> shard_of(const ChunkMap& chunks, std::size_t server) {
  std::vector<Range> ranges;
  for (const Chunk& chunk : chunks.all()) {
    if (chunk.server == server) {
      ranges.push_back(chunk.range);
    }
  }
  return ranges;
}

std::span<const float> values_in(const Range& range, std::span<const float> values) {
  return values.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.size()));
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Calls f(values, place) for what an array has of this range; its parts ascend.
template <class Parts, class F>
void for_each_overlap(const Range& range, std::span<const float> values, const Parts& array, F f) {
  const auto ends_before = [](const auto& part, std::int64_t at) { return part.range.end <= at; };
  for (auto part = std::lower_bound(array.begin(), array.end(), range.begin, ends_before);
       part != array.end() && part->range.begin < range.end; ++part) {
    const Range both{std::max(range.begin, part->range.begin),
                     std::min(range.end, part->range.end)};
    const auto size = static_cast<std::size_t>(both.size());
    f(values.subspan(static_cast<std::size_t>(both.begin - range.begin), size),
      part->values.subspan(static_cast<std::size_t>(both.begin - part->range.begin), size));
  }
}

}  // namespace

Resharding::Resharding(FormerNodes from, TakingNodes to)
    : from_(std::move(from)),
      to_(std::move(to)),
      parameters_(static_cast<std::size_t>(total_params(to_.job.layers))) {
  const Topology& topology = to_.job.topology;
  for (const HostId host : to_.hosts) {
    for (const NodeId node : topology.nodes_on(host)) {
      if (topology.is_worker(node) || to_.job.strategy.uses_servers()) {
        add_node(node);
      }
    }
  }
}

// What was all zeros is not saved, so all begin with zeros.
void Resharding::add_node(NodeId id) {
  const Topology& topology = to_.job.topology;
  const bool is_worker = topology.is_worker(id);
  Node node{.id = id, .leads = is_worker && AggregationGroups(to_.job).leader_of(id) == id};
  const std::vector<Range> shard =
      is_worker ? std::vector<Range>() : shard_of(to_.chunks, topology.server_index(id));
  for (const Remembered& one : to_.state.remembered(id, to_.chunks, topology)) {
    if (one.name == kClipFactor) {
      continue;
    }
    Parts& parts = node.arrays[one.name];
    for (std::size_t p = 0; p < one.parts.size(); ++p) {
      parts.push_back({is_worker ? Range{0, std::ssize(one.parts[p])} : shard[p], one.parts[p]});
      std::ranges::fill(one.parts[p], 0.0F);
    }
  }
  (is_worker ? workers_ : servers_).push_back(std::move(node));
}

Result<void> Resharding::take(HostId host, std::span<const StoredTensor> saved) {
  std::vector<StoredTensor> known;
  for (const NodeId node : from_.topology.nodes_on(host)) {  // workers first
    const std::string prefix = saved_prefix(node, from_.topology);
    for (const StoredTensor& tensor : saved) {
      if (!tensor.name.starts_with(prefix)) {
        continue;
      }
      known.push_back(tensor);
      const std::string name = tensor.name.substr(prefix.size());
      const auto taken = from_.topology.is_worker(node)
                             ? take_from_worker(node.index(), name, tensor)
                             : take_from_server(from_.topology.server_index(node), name, tensor);
      if (!taken) {
        return taken;
      }
    }
  }
  for (const StoredTensor& tensor : saved) {
    if (std::ranges::find(known, tensor.name, &StoredTensor::name) == known.end()) {
      return unknown(tensor);
    }
  }
  return host == HostId(0) ? recall(known) : Result<void>();
}

Result<void> Resharding::take_from_worker(std::size_t rank, const std::string& name,
                                          const StoredTensor& tensor) {
  const bool spreads = is_residual(name);
  if (name.starts_with(kLearner) || name == kClipFactor || (rank > 0 && !spreads)) {
    return {};
  }
  const bool is_model = name == kParameters;
  std::int64_t size = std::ssize(parameters_);
  if (!workers_.empty()) {
    const auto array = workers_.front().arrays.find(name);
    if (array == workers_.front().arrays.end()) {
      return unknown(tensor);
    }
    size = array->second.front().range.size();
  } else if (!is_model) {
    return {};
  }
  auto values = floats_in(tensor, size);
  if (!values) {
    return values.error();
  }
  const AggregationGroups groups(to_.job);
  const auto now = static_cast<double>(to_.job.topology.workers());
  const auto before = static_cast<double>(from_.topology.workers());
  const double share = now / before / static_cast<double>(groups.size());
  for (const Node& worker : workers_) {
    if (worker.leads && spreads) {
      add({0, size}, *values, static_cast<float>(share), worker.arrays.at(name));
    } else if (worker.leads || is_model) {
      put({0, size}, *values, worker.arrays.at(name));
    }
  }
  if (is_model) {
    for (const Node& server : servers_) {
      put({0, size}, *values, server.arrays.at(name));
    }
    parameters_ = *std::move(values);
  }
  return {};
}

Result<void> Resharding::take_from_server(std::size_t server, const std::string& name,
                                          const StoredTensor& tensor) {
  if (name == kClipFactor || servers_.empty()) {
    return {};
  }
  if (!servers_.front().arrays.contains(name)) {
    return unknown(tensor);
  }
  const std::vector<Range> shard = shard_of(from_.chunks, server);
  std::int64_t size = 0;
  for (const Range& range : shard) {
    size += range.size();
  }
  const auto values = floats_in(tensor, size);
  if (!values) {
    return values.error();
  }
  const float scale =
      static_cast<float>(to_.job.topology.workers()) / static_cast<float>(from_.topology.workers());
  std::span<const float> rest = *values;
  for (const Range& range : shard) {
    const std::span<const float> own = rest.first(static_cast<std::size_t>(range.size()));
    rest = rest.subspan(own.size());
    if (name == kParameters) {
      if (!to_.job.strategy.servers_sum() && !same_bits(own, values_in(range, parameters_))) {
        return Error(tensor.name + " is not what worker 0 has there");
      }
      continue;
    }
    for (const Node& node : servers_) {
      is_residual(name) ? add(range, own, scale, node.arrays.at(name))
                        : put(range, own, node.arrays.at(name));
    }
  }
  return {};
}

Result<void> Resharding::recall(std::span<const StoredTensor> of_first_host) const {
  const std::string prefix = saved_prefix(NodeId(0), from_.topology) + std::string(kLearner);
  std::vector<StoredTensor> state;
  for (const StoredTensor& tensor : of_first_host) {
    if (tensor.name.starts_with(prefix)) {
      state.push_back(tensor);
      state.back().name.erase(0, prefix.size());
    }
  }
  for (const Node& worker : workers_) {
    if (auto recalled = to_.state.learner(worker.id).recall(state); !recalled) {
      return recalled;
    }
  }
  return {};
}

void Resharding::put(const Range& range, std::span<const float> values, const Parts& array) {
  for_each_overlap(range, values, array, [](std::span<const float> from, std::span<float> to) {
    std::ranges::copy(from, to.begin());
  });
}

void Resharding::add(const Range& range, std::span<const float> values, float scale,
                     const Parts& array) {
  for_each_overlap(range, values, array, [&](std::span<const float> from, std::span<float> to) {
    std::ranges::transform(from, to, to.begin(), [&](float a, float b) { return b + scale * a; });
  });
}

}  // namespace sluice
