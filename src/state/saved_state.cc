#include "state/saved_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>

namespace sluice {
namespace {

constexpr const char* kOfLearner = "learner.";

bool all_zero(const Remembered& one) {
  static constexpr std::size_t kAtOnce = 1024;  // training waits for this
  static constexpr std::array<float, kAtOnce> kZeros{};
  return std::ranges::all_of(one.parts, [](std::span<const float> part) {
    while (!part.empty()) {
      const std::span<const float> some = part.first(std::min(part.size(), kAtOnce));
      if (std::memcmp(some.data(), kZeros.data(), some.size_bytes()) != 0) {
        return false;
      }
      part = part.subspan(some.size());
    }
    return true;
  });
}

TensorCopy copy_of(const std::string& name, const Remembered& one, std::vector<std::byte> memory) {
  TensorCopy copy{
      name, ElementType::kFloat32, {static_cast<std::int64_t>(one.size())}, std::move(memory)};
  copy.bytes.resize(one.size() * sizeof(float));
  auto at = copy.bytes.begin();
  for (const std::span<const float> part : one.parts) {
    at = std::ranges::copy(std::as_bytes(part), at).out;
  }
  return copy;
}

// The memory of the copy with this name, if there is one.
std::vector<std::byte> memory_of(const std::string& name, std::vector<TensorCopy>& copies) {
  const auto found = std::ranges::find(copies, name, &TensorCopy::name);
  return found == copies.end() ? std::vector<std::byte>() : std::move(found->bytes);
}

template <class Visit>
void for_each_node(const HostState& of, Visit visit) {
  for (const NodeId node : of.topology.nodes_on(of.host)) {
    if (of.topology.is_worker(node) || of.has_servers) {
      visit(node, saved_prefix(node, of.topology));
    }
  }
}

// What was saved, by name; taken out as it is used.
class Saved {
 public:
  explicit Saved(std::span<const StoredTensor> tensors) {
    for (const StoredTensor& tensor : tensors) {
      by_name_.emplace(tensor.name, tensor);
    }
  }

  Result<void> fill(const std::string& name, const Remembered& one) {
    const auto found = by_name_.extract(name);
    if (found.empty()) {
      for (const std::span<float> part : one.parts) {
        std::ranges::fill(part, 0.0F);
      }
      return {};
    }
    std::span<const std::byte> bytes = found.mapped().bytes;
    if (found.mapped().type != ElementType::kFloat32 ||
        bytes.size() != one.size() * sizeof(float)) {
      return Error(fmt::format("{} has {} bytes, and this run has {} there", name, bytes.size(),
                               one.size() * sizeof(float)));
    }
    for (const std::span<float> part : one.parts) {
      if (!part.empty()) {
        std::memcpy(part.data(), bytes.data(), part.size_bytes());
      }
      bytes = bytes.subspan(part.size_bytes());
    }
    return {};
  }

  // All that begin with this prefix, without it.
  std::vector<StoredTensor> take(const std::string& prefix) {
    std::vector<StoredTensor> taken;
    for (auto at = by_name_.lower_bound(prefix);
         at != by_name_.end() && at->first.starts_with(prefix);) {
      taken.push_back(at->second);
      taken.back().name.erase(0, prefix.size());
      at = by_name_.erase(at);
    }
    return taken;
  }

  Result<void> expect_none() const {
    return by_name_.empty()
               ? Result<void>()
               : Error(fmt::format("{} is nothing that this run has", by_name_.begin()->first));
  }

 private:
  std::map<std::string, StoredTensor> by_name_;
};

// Where a worker has the parameters that this server keeps.
Remembered shard_in(NodeId worker, NodeId server, const HostState& of) {
  Remembered shard{.name = "parameters", .parts = {}};
  for (const Chunk& chunk : of.chunks.all()) {
    if (of.topology.server(chunk.server) == server) {
      shard.parts.push_back(of.state.workspace(worker).view({Buffer::kParameters, chunk.range}));
    }
  }
  return shard;
}

}  // namespace

std::string saved_prefix(NodeId node, const Topology& topology) {
  return topology.is_worker(node) ? fmt::format("worker.{}.", node.index())
                                  : fmt::format("server.{}.", topology.server_index(node));
}

std::vector<TensorCopy> copy_state(const HostState& from, std::vector<TensorCopy> earlier) {
  std::vector<TensorCopy> copies;
  for_each_node(from, [&](NodeId node, const std::string& prefix) {
    for (const Remembered& one : from.state.remembered(node, from.chunks, from.topology)) {
      if (!all_zero(one)) {
        const std::string name = prefix + one.name;
        copies.push_back(copy_of(name, one, memory_of(name, earlier)));
      }
    }
    if (from.topology.is_worker(node)) {
      for (TensorCopy& tensor : from.state.learner(node).remembered()) {
        tensor.name.insert(0, prefix + kOfLearner);
        copies.push_back(std::move(tensor));
      }
    }
  });
  return copies;
}

Result<void> restore_state(std::span<const StoredTensor> tensors, const HostState& to) {
  Saved saved(tensors);
  Result<void> result;
  const auto note = [&](const Result<void>& step) {
    if (result && !step) {
      result = step;
    }
  };
  for_each_node(to, [&](NodeId node, const std::string& prefix) {
    for (const Remembered& one : to.state.remembered(node, to.chunks, to.topology)) {
      note(saved.fill(prefix + one.name, one));
    }
    if (to.topology.is_worker(node)) {
      note(to.state.learner(node).recall(saved.take(prefix + kOfLearner)));
    }
  });
  note(saved.expect_none());
  return result;
}

Result<void> copy_servers(std::span<const StoredTensor> tensors, HostId from, const HostState& to) {
  for (const NodeId worker : to.topology.nodes_on(to.host)) {
    if (!to.topology.is_worker(worker)) {
      continue;
    }
    Saved saved(tensors);
    for (const NodeId server : to.topology.nodes_on(from)) {
      if (to.topology.is_worker(server)) {
        continue;
      }
      const Remembered shard = shard_in(worker, server, to);
      if (auto filled = saved.fill(saved_prefix(server, to.topology) + shard.name, shard);
          !filled) {
        return filled;
      }
    }
  }
  return {};
}

}  // namespace sluice
