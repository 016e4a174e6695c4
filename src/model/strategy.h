#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/id.h"
#include "base/units.h"
#include "model/algorithm.h"
#include "model/axes.h"
#include "model/cadence.h"
#include "model/codec.h"
#include "model/deep_gradient_options.h"
#include "model/layer.h"
#include "model/top_k_options.h"

namespace sluice {

// 56 KB go out with their announcement, before the receiver has asked for them.
inline constexpr std::int64_t kEagerParams = 14'336;

// PowerSGD: the rank of factors by default, that of the paper's language model.
inline constexpr std::int64_t kPowerRank = 4;

// What must be summed before a part of it can be updated, in an all-reduce.
enum class SumsFirst : std::uint8_t {
  kSegment,  // what is updated
  kChunk,    // its chunk, for an optimiser that needs whole layers
  kModel,    // all gradients of the iteration, for their norm
};

// The six axes. A run is a point: algorithm x exchange x partition x order x codec x cadence.
struct Strategy {
  Algorithm algorithm = Algorithm::kBsp;
  Exchange exchange = Exchange::kBroadcast;
  Partition partition = Partition::kSlice;
  Order order = Order::kPriority;
  Codec codec = Codec::kNone;
  Cadence cadence;

  std::int64_t slice_params = 50'000;  // partition slice: at most so many parameters
  // Partitions slice and layer: neighbouring layers of together at most so many parameters are one
  // chunk. 0: none are.
  std::int64_t join_params = 0;
  std::int64_t kvstore_split_params = 1'000'000;  // partition kvstore: split from this size on
  Merge merge = Merge::kOptimal;                  // partition merged: how to group the layers
  Bytes credit = 600'000;  // order priority: handed to the network and not yet confirmed, per host
  Bytes peer_credit = 200'000;     // likewise to one other host, in any order
  bool local_aggregation = false;  // the workers of a machine sum their gradients first
  bool staggered = true;  // each worker begins a layer with another chunk; false: as P3 does
  std::uint64_t seed = 1;

  std::optional<Update> update;  // none: as servers_sum() says

  // Only where learners_can_update() or learners_can_step(): the learner makes the updates of its
  // worker, with sums or with gradients of its own.
  bool learners_update = false;
  // Only where learners_can_pack(): a worker's gradients() hold codes.
  bool learners_pack = false;
  SumsFirst sums_first = SumsFirst::kSegment;  // follows from the update rule

  bool error_feedback = false;  // what the code loses goes into the next; not with codec dgc
  double feedback_decay = 1;    // so much of what earlier codes have lost
  DeepGradientOptions dgc;
  TopKOptions top_k;
  std::int64_t power_rank = kPowerRank;  // powersgd: of the factors

  // What a hop of an all-reduce carries at most; longer chunks are summed in segments. 0: in one.
  std::int64_t segment_params = kEagerParams;
  std::optional<Collective> collective;  // none: the cheapest for each chunk
  Iteration staleness = 10;              // ssp: how far a worker may be ahead of the slowest
  Iteration period = 8;                  // easgd: iterations between two talks with the centre
  double elasticity = 0;                 // easgd: pull towards the centre; 0: 0.9 / workers
  double gossip_probability = 0.01;      // gosgd: of talking after an iteration
  Iteration pipeline_depth = 2;          // pipe-sgd: the update of t uses the gradient of t - depth
  Iteration pipeline_warmup = 0;         // pipe-sgd: iterations with depth 1 at the start

  bool coded() const { return codec != Codec::kNone; }
  bool sparse() const { return traits_of(codec).kind == CodecKind::kSparse; }
  bool gathered() const { return traits_of(codec).kind == CodecKind::kGathered; }
  bool factored() const { return traits_of(codec).kind == CodecKind::kFactored; }
  // Whether this matrix travels as factors: they take less than half of it. As PyTorch's hook.
  bool factors(const Matrix& matrix) const {
    return factored() && 2 * matrix.factored(power_rank) < matrix.range().size();
  }
  // As the sums of an all-reduce see it: what travels as factors is summed as floats.
  Strategy of_sums() const {
    Strategy sums = *this;
    sums.codec = factored() ? Codec::kNone : codec;
    return sums;
  }
  // A chunk is exchanged as one code, and not in parts that are summed by themselves.
  bool travels_whole() const { return sparse() || gathered(); }
  // Every sum is one operation of the driver.
  bool driver_sums() const {
    return collective == Collective::kNative || collective == Collective::kSharedMemory;
  }
  // Servers have no model: they add up gradients, and workers update. Unless someone chooses, that
  // is where a dense codec can pack the sum on its way back; it does not pack parameters.
  bool servers_sum() const {
    const bool packs_sums = algorithm == Algorithm::kBsp && coded() && !sparse();
    return uses_servers() &&
           update.value_or(packs_sums ? Update::kWorker : Update::kServer) == Update::kWorker;
  }
  // What servers send back is packed: what has changed, or the sum.
  bool servers_pack() const { return uses_servers() && (sparse() || (servers_sum() && coded())); }
  // Every worker gets all that an update needs, and no other worker waits for the result.
  bool learners_can_update() const {
    return algorithm == Algorithm::kBsp && (exchange == Exchange::kAllReduce || servers_sum()) &&
           !sparse();
  }
  // A worker has nothing to do with its gradients but to pack them; and with sums but to unpack
  // them, or to follow what they change in its parameters. Learners that pack no sparse codec
  // update.
  bool learners_can_pack() const {
    if (local_aggregation) {
      return false;
    }
    if (sparse()) {
      return algorithm == Algorithm::kBsp;
    }
    return learners_can_update() &&
           (factored() ||
            (uses_servers() && (codec == Codec::kBf16 || codec == Codec::kQuantise8)));
  }
  // The learner makes the products of codec powersgd, also those between two sums.
  bool learners_factor() const { return learners_pack && factored(); }
  // Every update of a worker but those at the end of an exchange uses its own gradients alone.
  bool learners_can_step() const {
    return algorithm == Algorithm::kLocal && cadence.synchronous == 0;
  }
  bool uses_servers() const {
    return exchange != Exchange::kAllReduce && exchange != Exchange::kGossip;
  }
  // Gradients of so many iterations may be in use at a time.
  std::size_t gradient_slots() const { return traits_of(algorithm).gradient_slots(*this); }
  // Which of them holds the gradient that goes into the parameters of this iteration.
  std::size_t gradient_slot(Iteration iteration) const {
    const std::size_t slots = gradient_slots();
    return slots == 1 ? 0 : static_cast<std::size_t>(iteration - 1) % slots;
  }
  // Whether sums are made while the worker computes with all its gradients: in a buffer of their
  // own, after those of gradient_slots(). Without a delay that happens where a worker is lost and
  // the others go on: what they have sent each other still arrives.
  bool sums_aside() const { return sums_last() || sums_can_be_given_up(); }
  // Whether a sum is used while the worker takes further steps, or after the end of a phase.
  bool sums_last() const { return algorithm == Algorithm::kLocal && cadence.delay > 0; }
  // Whether workers of algorithm local-steps can do without the sum of an exchange: then the next
  // one makes up for it. Those of synchronous iterations they need.
  bool sums_can_be_given_up() const {
    return algorithm == Algorithm::kLocal && exchange == Exchange::kAllReduce &&
           !local_aggregation && !driver_sums();
  }
  // Which buffer holds the sum of this iteration.
  std::size_t sum_slot(Iteration iteration) const {
    return sums_aside() && iteration > cadence.synchronous ? gradient_slots()
                                                           : gradient_slot(iteration);
  }
};

}  // namespace sluice
