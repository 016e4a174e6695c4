#include "nodes/validate_cadence.h"

#include <fmt/format.h>

namespace sluice {
namespace {

Result<void> validate_turns(const Strategy& strategy) {
  const Cadence& cadence = strategy.cadence;
  if (cadence.fragments > cadence.every) {
    return Error(fmt::format(
        "fragments {} and every {} do not go together: one fragment at most is exchanged after a "
        "local step, and each once in {} of them; take at most {} fragments, or a larger every",
        cadence.fragments, cadence.every, cadence.every, cadence.every));
  }
  if (cadence.fragments > 1 && strategy.partition == Partition::kWhole) {
    return Error(fmt::format(
        "fragments {} does not go with partition whole: all layers are one chunk; take partition "
        "layer or slice, or one fragment",
        cadence.fragments));
  }
  if (cadence.delay >= cadence.every) {
    return Error(fmt::format(
        "outer-delay {} and every {} do not go together: a fragment's outer step is taken before "
        "its next exchange begins; take an outer-delay of at most {}",
        cadence.delay, cadence.every, cadence.every - 1));
  }
  return {};
}

Result<void> validate_pairs(const Strategy& strategy) {
  const bool in_pairs = strategy.exchange == Exchange::kGossip;
  if (!in_pairs && strategy.cadence.pull != Cadence{}.pull) {
    return Error(
        "outer-pull draws the global parameters of two workers together, and with exchange "
        "allreduce all have the same; take exchange gossip, or leave it out");
  }
  if (in_pairs && strategy.cadence.synchronous > 0) {
    return Error(
        "synchronous-first sums gradients over all workers, and exchange gossip reaches only one; "
        "take exchange allreduce, or leave it out");
  }
  return {};
}

}  // namespace

Result<void> validate_cadence(const Strategy& strategy) {
  const Cadence& cadence = strategy.cadence;
  if (traits_of(strategy.algorithm).sends != Sends::kOuterGradients) {
    return cadence == Cadence{}
               ? Result<void>()
               : Error(fmt::format(
                     "every, outer, outer-rate, outer-momentum, outer-pull, outer-delay, "
                     "outer-mix, fragments and synchronous-first are about local steps, and "
                     "workers of algorithm {} exchange as it says; take algorithm local-steps, or "
                     "leave them out",
                     traits_of(strategy.algorithm).name));
  }
  if (auto valid = validate_turns(strategy); !valid) {
    return valid;
  }
  if (auto valid = validate_pairs(strategy); !valid) {
    return valid;
  }
  if (cadence.outer == Outer::kMean && cadence.momentum != Cadence{}.momentum) {
    return Error(
        "outer-momentum is for outer nesterov, and outer mean has none; take outer nesterov, or "
        "leave it out");
  }
  if (cadence.mix >= 1) {
    return Error(
        "outer-mix 1 keeps each worker's own parameters, so that workers never hear of each other; "
        "take less than 1");
  }
  if (strategy.sparse()) {
    return Error(
        "codec dgc does not go with algorithm local-steps: it corrects the momentum of gradients "
        "that are exchanged step by step, and local steps have used theirs; take a dense codec or "
        "top-k, or algorithm bsp");
  }
  return {};
}

}  // namespace sluice
