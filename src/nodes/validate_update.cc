#include "nodes/validate_update.h"

#include <string>

namespace sluice {
namespace {

std::string optimizer_name(const UpdateRule& rule) {
  return "optimizer " + std::string(rule.traits().name);
}

std::string algorithm_name(const Strategy& strategy) {
  return "algorithm " + std::string(traits_of(strategy.algorithm).name);
}

// Whether each update has the gradient of one worker, which is a share of the joined batch.
bool updates_by_shares(const Strategy& strategy) {
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  return algorithm.sends == Sends::kGradients && !algorithm.replicas_agree();
}

Result<void> validate_shares(const UpdateRule& rule, const Strategy& strategy) {
  if (!updates_by_shares(strategy)) {
    return {};
  }
  if (!rule.traits().linear) {
    return Error(optimizer_name(rule) + " does not go with " + algorithm_name(strategy) +
                 ": each worker's gradient comes by itself as a share of the batch, and as the "
                 "optimiser divides by the size of the gradient, each share would make a whole "
                 "step; take optimizer sgd, or algorithm bsp");
  }
  if (rule.clip_value > 0) {
    return Error("clip-value does not go with " + algorithm_name(strategy) +
                 ": it limits the mean gradient of all workers, and each worker's gradient is "
                 "applied by itself; take algorithm bsp, or leave it out");
  }
  return {};
}

Result<void> validate_sparse(const UpdateRule& rule, const Strategy& strategy) {
  if (!strategy.sparse()) {
    return {};
  }
  if (rule.optimizer != Optimizer::kSgd || rule.options.nesterov || rule.options.dampening != 0) {
    const bool sgd = rule.optimizer == Optimizer::kSgd;
    return Error(optimizer_name(rule) + (sgd ? " with nesterov or dampening" : "") +
                 " does not go with codec dgc: its workers accumulate the momentum of plain SGD "
                 "for what they do not send; take optimizer sgd " +
                 (sgd ? "without them" : "") + (sgd ? ", " : "") + "or another codec");
  }
  if (rule.clip_value > 0 || rule.clip_norm > 0) {
    return Error(std::string(rule.clip_value > 0 ? "clip-value" : "clip-norm") +
                 " does not go with codec dgc: the mean is sparse, and each worker clips its own "
                 "gradient before it selects; take dgc-clip-norm instead");
  }
  return {};
}

Result<void> validate_whole_layers(const UpdateRule& rule, const Strategy& strategy) {
  if (!rule.traits().whole_layers) {
    return {};
  }
  if (strategy.partition == Partition::kSlice || strategy.partition == Partition::kKvstore) {
    return Error(optimizer_name(rule) + " does not go with partition " +
                 std::string(name_of(kPartitionNames, strategy.partition)) +
                 ": it needs the norm of a whole layer, and the parts of a layer are updated by "
                 "themselves; take partition layer or whole");
  }
  if (strategy.factored()) {
    return Error(optimizer_name(rule) +
                 " does not go with codec powersgd: it needs the norm of a whole layer, and the "
                 "factors of a matrix and the rest of its layer are updated by themselves; take "
                 "optimizer sgd or adamw, or another codec");
  }
  if (traits_of(strategy.algorithm).coupling == Coupling::kPipelined) {
    return Error(optimizer_name(rule) + " does not go with " + algorithm_name(strategy) +
                 ": it needs the sum of a whole layer, and the segments of several iterations are "
                 "under way at a time; take algorithm bsp");
  }
  return {};
}

Result<void> validate_norm(const UpdateRule& rule, const Strategy& strategy) {
  if (rule.clip_norm <= 0) {
    return {};
  }
  if (rule.clip_value > 0) {
    return Error("clip-norm and clip-value are two ways to clip; take one of them");
  }
  if (traits_of(strategy.algorithm).sends == Sends::kOuterGradients) {
    return {};
  }
  if (strategy.algorithm != Algorithm::kBsp) {
    return Error("clip-norm does not go with " + algorithm_name(strategy) +
                 ": it needs all gradients of an iteration before the first update; take "
                 "algorithm bsp with exchange allreduce, algorithm local-steps, or clip-value");
  }
  if (strategy.exchange != Exchange::kAllReduce && !strategy.servers_sum()) {
    return Error("clip-norm does not go with exchange " +
                 std::string(name_of(kExchangeNames, strategy.exchange)) +
                 " and updates of servers: it needs the whole mean gradient, and each server has "
                 "only its shard; take update worker, an all-reduce, or clip-value");
  }
  return {};
}

}  // namespace

Result<void> validate(const UpdateRule& rule, const Strategy& strategy) {
  for (const auto check_of :
       {validate_shares, validate_sparse, validate_whole_layers, validate_norm}) {
    if (auto valid = check_of(rule, strategy); !valid) {
      return valid;
    }
  }
  return {};
}

SumsFirst sums_first(const UpdateRule& rule) {
  return rule.clip_norm > 0           ? SumsFirst::kModel
         : rule.traits().whole_layers ? SumsFirst::kChunk
                                      : SumsFirst::kSegment;
}

}  // namespace sluice
