#include "session/node_knowledge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "codecs/sparse.h"
#include "state/saved_state.h"

namespace sluice {
namespace {

// The workers of a host, each with the beginning of the names of what it has.
template <class Visit>
void for_each_worker(const Assembly& assembly, HostId host, Visit visit) {
  const Topology& topology = assembly.job.topology;
  for (const NodeId node : topology.nodes_on(host)) {
    if (topology.is_worker(node)) {
      visit(node, saved_prefix(node, topology));
    }
  }
}

std::string kept_name(const std::string& prefix, std::size_t place) {
  return fmt::format("{}kept.{}", prefix, place);
}

TensorCopy copy_of_weights(const std::string& prefix, std::span<const double> weights) {
  const auto bytes = std::as_bytes(weights);
  return {prefix + "weights",
          ElementType::kFloat64,
          {static_cast<std::int64_t>(weights.size())},
          {bytes.begin(), bytes.end()}};
}

// Takes it out, if it is there.
std::optional<StoredTensor> extract(std::vector<StoredTensor>& saved, const std::string& name) {
  const auto found = std::ranges::find(saved, name, &StoredTensor::name);
  if (found == saved.end()) {
    return std::nullopt;
  }
  StoredTensor tensor = std::move(*found);
  saved.erase(found);
  return tensor;
}

Result<void> take_weights(std::vector<StoredTensor>& saved, const std::string& prefix,
                          std::span<double> weights, double share) {
  if (weights.empty()) {
    return {};
  }
  const auto tensor = extract(saved, prefix + "weights");
  if (!tensor) {
    return Error(prefix + "weights is missing");
  }
  if (tensor->type != ElementType::kFloat64 || tensor->bytes.size() != weights.size_bytes()) {
    return Error(fmt::format("{} has {} bytes, and this run has {} there", tensor->name,
                             tensor->bytes.size(), weights.size_bytes()));
  }
  std::memcpy(weights.data(), tensor->bytes.data(), weights.size_bytes());
  const auto is_weight = [](double weight) { return weight > 0 && weight <= 1; };
  const bool valid = std::ranges::all_of(weights, is_weight);
  std::ranges::for_each(weights, [&](double& weight) { weight *= share; });
  return valid ? Result<void>() : Error(tensor->name + " has values that are no weights");
}

// Kept are sparse sums, or what a partner has sent: its outer gradient and its global parameters.
Result<void> check_kept(const Strategy& strategy, const StoredTensor& tensor,
                        std::int64_t parameters) {
  const Bytes expected = 2 * parameters * kFloatBytes;
  if (tensor.type != ElementType::kUint8 ||
      (!strategy.sparse() && static_cast<Bytes>(tensor.bytes.size()) != expected)) {
    return Error(fmt::format("{} has {} bytes, and this run has {} there", tensor.name,
                             tensor.bytes.size(), expected));
  }
  if (!strategy.sparse()) {
    return {};
  }
  const auto parsed = SparseView::parse(tensor.bytes, parameters);
  return parsed ? Result<void>() : parsed.error().within(tensor.name);
}

Result<void> take_kept(std::vector<StoredTensor>& saved, const std::string& prefix,
                       const Assembly& assembly, std::span<Payload> kept) {
  const std::size_t places = kept.size() / std::max<std::size_t>(assembly.chunks->size(), 1);
  for (std::size_t place = 0; place < kept.size(); ++place) {
    kept[place] = {};
    const auto tensor = extract(saved, kept_name(prefix, place));
    if (!tensor) {
      continue;
    }
    const Range range = (*assembly.chunks)[ChunkId(place / places)].range;
    if (auto valid = check_kept(assembly.job.strategy, *tensor, range.size()); !valid) {
      return valid;
    }
    kept[place] =
        Payload::owning(std::vector<std::byte>(tensor->bytes.begin(), tensor->bytes.end()));
  }
  return {};
}

}  // namespace

std::vector<TensorCopy> copy_knowledge(const Assembly& assembly, HostId host) {
  std::vector<TensorCopy> copies;
  for_each_worker(assembly, host, [&](NodeId worker, const std::string& prefix) {
    if (const auto weights = assembly.weights(worker); !weights.empty()) {
      copies.push_back(copy_of_weights(prefix, weights));
    }
    const std::span<const Payload> kept = assembly.kept(worker);
    for (std::size_t place = 0; place < kept.size(); ++place) {
      if (const auto bytes = kept[place].bytes(); !bytes.empty()) {
        copies.push_back({kept_name(prefix, place),
                          ElementType::kUint8,
                          {static_cast<std::int64_t>(bytes.size())},
                          {bytes.begin(), bytes.end()}});
      }
    }
  });
  return copies;
}

Result<void> take_knowledge(std::vector<StoredTensor>& saved, const Assembly& assembly, HostId host,
                            double share) {
  Result<void> result;
  for_each_worker(assembly, host, [&](NodeId worker, const std::string& prefix) {
    for (const auto& taken : {take_weights(saved, prefix, assembly.weights(worker), share),
                              take_kept(saved, prefix, assembly, assembly.kept(worker))}) {
      if (result && !taken) {
        result = taken;
      }
    }
  });
  return result;
}

}  // namespace sluice
