#include "nodes/validate.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "nodes/validate_cadence.h"
#include "nodes/validate_factored.h"

namespace sluice {
namespace {

// The names of the rows that are so: "a", "a or b", "a, b or c".
template <class Row, std::size_t N, class Predicate>
std::string names_where(const std::array<Row, N>& rows, Predicate is_so) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (is_so(row)) {
      names.emplace_back(row.name);
    }
  }
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    list += (i == 0 ? "" : last ? " or " : ", ") + names[i];
  }
  return list;
}

std::string named(Algorithm algorithm) {
  return "algorithm " + std::string(traits_of(algorithm).name);
}

std::string named(Exchange exchange) {
  return "exchange " + std::string(name_of(kExchangeNames, exchange));
}

std::string named(Codec codec) { return "codec " + std::string(traits_of(codec).name); }

Result<void> validate_partition(const Strategy& strategy) {
  if (!strategy.uses_servers() && strategy.partition == Partition::kKvstore) {
    return Error("partition kvstore splits layers over parameter servers, and " +
                 named(strategy.exchange) +
                 " has none; take partition layer or slice, or exchange ps-pull or ps-broadcast");
  }
  if (strategy.partition != Partition::kMerged) {
    return {};
  }
  if (strategy.exchange != Exchange::kAllReduce) {
    return Error("partition merged does not go with " + named(strategy.exchange) +
                 ": it weighs the start-up of an all-reduce against waiting for more layers; take "
                 "exchange allreduce, or partition layer or slice");
  }
  const auto in_lock_step = [](const AlgorithmTraits& algorithm) {
    return algorithm.coupling == Coupling::kLockStep;
  };
  if (!in_lock_step(traits_of(strategy.algorithm))) {
    return Error("partition merged does not go with " + named(strategy.algorithm) +
                 ": its plan is for sums that the next iteration waits for; take algorithm " +
                 names_where(kAlgorithms, in_lock_step) + ", or partition whole");
  }
  return {};
}

Result<void> validate_algorithm(const Strategy& strategy) {
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  if (strategy.local_aggregation && !algorithm.replicas_agree()) {
    return Error(
        "local aggregation makes the workers of a machine step together, and those of " +
        named(strategy.algorithm) + " do not; leave it off, or take algorithm " +
        names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.replicas_agree(); }));
  }
  if (auto valid = validate_partition(strategy); !valid) {
    return valid;
  }
  if (!algorithm.exchanges.contains(strategy.exchange)) {
    return Error(named(strategy.algorithm) + " does not go with " + named(strategy.exchange) +
                 ": " + std::string(algorithm.why_no_other));
  }
  return {};
}

Result<void> validate_update(const Strategy& strategy) {
  if (strategy.update == Update::kServer && !strategy.uses_servers()) {
    return Error("update server needs servers, and " + named(strategy.exchange) +
                 " has none: workers update; leave it away, or take update worker");
  }
  if (!strategy.servers_sum()) {
    return {};
  }
  if (strategy.algorithm != Algorithm::kBsp) {
    return Error("update worker has servers return the sum of all gradients of an iteration, and " +
                 named(strategy.algorithm) +
                 " does not wait for all; take algorithm bsp, or update server");
  }
  if (strategy.sparse()) {
    return Error("update worker does not go with " + named(strategy.codec) +
                 ": its servers answer with the parameters that have changed; take update server, "
                 "a dense codec, or exchange allreduce");
  }
  return {};
}

Result<void> validate_top_k(const Strategy& strategy) {
  if (!strategy.gathered()) {
    return strategy.top_k == TopKOptions{}
               ? Result<void>()
               : Error(
                     "top-k-block, top-k-kept and top-k-bits are about codec top-k, and this is " +
                     named(strategy.codec) + "; take codec top-k, or leave them out");
  }
  if (strategy.top_k.kept > strategy.top_k.block) {
    return Error("top-k-kept " + std::to_string(strategy.top_k.kept) + " and top-k-block " +
                 std::to_string(strategy.top_k.block) +
                 " do not go together: a block has no more values than that; take fewer");
  }
  if (strategy.top_k.bits != 2 && strategy.top_k.bits != 32) {
    return Error("top-k-bits " + std::to_string(strategy.top_k.bits) +
                 ": a value is sent in 2 bits, or in 32 as it is; take one of them");
  }
  return {};
}

Result<void> validate_codec(const Strategy& strategy) {
  const CodecTraits& codec = traits_of(strategy.codec);
  const bool sends_parameters = traits_of(strategy.algorithm).sends == Sends::kParameters ||
                                strategy.exchange == Exchange::kGossip;
  if (strategy.coded() && sends_parameters) {
    return Error(named(strategy.codec) + " packs gradients, and " + named(strategy.algorithm) +
                 " sends parameters, which bear no such loss; take codec none");
  }
  if (auto valid = validate_factored(strategy); !valid || strategy.factored()) {
    return valid ? validate_top_k(strategy) : valid;
  }
  const bool in_parts = strategy.collective && !strategy.driver_sums() &&
                        *strategy.collective != Collective::kRecursiveDoubling;
  if (strategy.travels_whole() && in_parts) {
    return Error("collective " + std::string(name_of(kCollectiveNames, *strategy.collective)) +
                 " sums a gradient in parts, and " + named(strategy.codec) + "'s " +
                 (strategy.sparse() ? "sparse sum travels" : "codes travel") +
                 " whole; take collective auto or recursive-doubling");
  }
  if (strategy.gathered() && strategy.exchange != Exchange::kAllReduce) {
    return Error(named(strategy.codec) + " does not go with " + named(strategy.exchange) +
                 ": every worker gathers the codes of all others, and no server's sum has such a "
                 "code; take exchange allreduce, or codec dgc or quantise2");
  }
  // Who packs, packs for the first time: a gradient on its way to where it is summed, or the sum.
  const bool packs_once =
      strategy.uses_servers() || strategy.gathered() || strategy.collective == Collective::kDirect;
  if (strategy.gathered() && !strategy.error_feedback) {
    return Error(named(strategy.codec) +
                 " sends so little that training does not bear the loss of the rest; turn error "
                 "feedback on");
  }
  if (codec.needs_feedback && (!strategy.error_feedback || !packs_once)) {
    return Error(named(strategy.codec) +
                 " loses more than training bears unless error feedback corrects all that is "
                 "packed, and an all-reduce packs at every hop; turn error feedback on and take an "
                 "exchange with servers, collective direct, or codec quantise8");
  }
  const auto bears_feedback = [](const CodecTraits& c) {
    return c.kind != CodecKind::kPlain && c.kind != CodecKind::kSparse;
  };
  if (strategy.error_feedback && !bears_feedback(codec)) {
    return Error("error feedback keeps what codec " + names_where(kCodecs, bears_feedback) +
                 " loses, and " + named(strategy.codec) +
                 (strategy.sparse() ? " keeps what it does not send by itself" : " loses nothing") +
                 "; leave it off, or take another codec");
  }
  if (strategy.feedback_decay != 1 && !strategy.error_feedback) {
    return Error(
        "error-feedback-decay is about what error feedback keeps; turn error feedback on, or leave "
        "it out");
  }
  return validate_top_k(strategy);
}

}  // namespace

Result<void> validate(const Strategy& strategy) {
  if (auto valid = validate_algorithm(strategy); !valid) {
    return valid;
  }
  if (auto valid = validate_update(strategy); !valid) {
    return valid;
  }
  if (auto valid = validate_cadence(strategy); !valid) {
    return valid;
  }
  return validate_codec(strategy);
}

}  // namespace sluice
