#include "nodes/resumable.h"

#include <string>

namespace sluice {

Result<void> check_resumable(const Strategy& strategy) {
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  if (algorithm.coupling == Coupling::kPipelined && strategy.sparse()) {
    return Error("algorithm " + std::string(algorithm.name) +
                 " with a sparse codec has no checkpoints yet: its workers keep sparse sums for "
                 "later iterations; take another codec, or algorithm bsp");
  }
  if (strategy.sums_last() && strategy.exchange == Exchange::kGossip) {
    return Error(
        "exchange gossip with a delay has no checkpoints yet: workers keep what their partners "
        "have sent for later iterations; take delay 0, or exchange allreduce");
  }
  return {};
}

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
