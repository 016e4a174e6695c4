#include "session/host_copies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "session/node_knowledge.h"

namespace sluice {

HostState host_state(const Assembly& assembly, TrainingState& state, HostId host) {
  return {.state = state,
          .topology = assembly.job.topology,
          .chunks = *assembly.chunks,
          .has_servers = assembly.job.strategy.uses_servers(),
          .host = host};
}

std::vector<TensorCopy> copies_of(const Assembly& assembly, TrainingState& state, HostId host,
                                  std::vector<TensorCopy> earlier) {
  std::vector<TensorCopy> copies =
      copy_state(host_state(assembly, state, host), std::move(earlier));
  std::ranges::move(copy_knowledge(assembly, host), std::back_inserter(copies));
  return copies;
}

}  // namespace sluice
