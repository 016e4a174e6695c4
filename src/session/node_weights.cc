#include "session/node_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "state/saved_state.h"

namespace sluice {
namespace {

// The workers of a host that have weights, each with their name.
template <class Visit>
void for_each_weighted(const Assembly& assembly, HostId host, Visit visit) {
  const Topology& topology = assembly.job.topology;
  for (const NodeId node : topology.nodes_on(host)) {
    if (topology.is_worker(node) && !assembly.weights(node).empty()) {
      visit(saved_prefix(node, topology) + "weights", assembly.weights(node));
    }
  }
}

Result<void> take(const StoredTensor& tensor, std::span<double> weights) {
  if (tensor.type != ElementType::kFloat64 || tensor.bytes.size() != weights.size_bytes()) {
    return Error(fmt::format("{} has {} bytes, and this run has {} there", tensor.name,
                             tensor.bytes.size(), weights.size_bytes()));
  }
  std::memcpy(weights.data(), tensor.bytes.data(), weights.size_bytes());
  const auto is_weight = [](double weight) { return weight > 0 && weight <= 1; };
  return std::ranges::all_of(weights, is_weight)
             ? Result<void>()
             : Error(tensor.name + " has values that are no weights");
}

}  // namespace

std::vector<TensorCopy> copy_weights(const Assembly& assembly, HostId host) {
  std::vector<TensorCopy> copies;
  for_each_weighted(assembly, host, [&](const std::string& name, std::span<double> weights) {
    const auto bytes = std::as_bytes(weights);
    copies.push_back({name,
                      ElementType::kFloat64,
                      {static_cast<std::int64_t>(weights.size())},
                      {bytes.begin(), bytes.end()}});
  });
  return copies;
}

Result<void> take_weights(std::vector<StoredTensor>& saved, const Assembly& assembly, HostId host,
                          double share) {
  Result<void> result;
  for_each_weighted(assembly, host, [&](const std::string& name, std::span<double> weights) {
    const auto found = std::ranges::find(saved, name, &StoredTensor::name);
    const Result<void> taken =
        found == saved.end() ? Error(name + " is missing") : take(*found, weights);
    if (found != saved.end()) {
      saved.erase(found);
    }
    for (double& weight : weights) {
      weight *= share;
    }
    if (result && !taken) {
      result = taken;
    }
  });
  return result;
}

}  // namespace sluice
