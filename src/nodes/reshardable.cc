#include "nodes/reshardable.h"

#include <string>

namespace sluice {

Result<void> check_reshardable(const Strategy& strategy) {
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  const auto refusal = [](const std::string& who, const std::string& why) {
    return Error(who + " goes on only with the workers, servers and hosts that it had: " + why);
  };
  if (algorithm.sends == Sends::kOuterGradients) {
    return refusal("algorithm " + std::string(algorithm.name),
                   "each worker has parameters and an optimiser of its own between two exchanges");
  }
  if (!algorithm.replicas_agree()) {
    return refusal("algorithm " + std::string(algorithm.name),
                   "each worker has parameters and an iteration of its own");
  }
  if (algorithm.coupling != Coupling::kLockStep) {
    return refusal("algorithm " + std::string(algorithm.name),
                   "its workers keep sums over so many workers for later iterations");
  }
  if (strategy.sparse()) {
    return refusal("codec " + std::string(traits_of(strategy.codec).name),
                   "each worker has a velocity of its own, with gaps where it has sent values");
  }
  return {};
}

}  // namespace sluice
