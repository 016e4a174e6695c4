#include "planner/tuning.h"

#include <algorithm>
#include <string>

#include "model/aggregation_groups.h"
#include "model/message_size.h"
#include "planner/aggregation.h"

namespace sluice {
namespace {

template <class T>
void tune(T& size, bool chosen, T tuned) {
  size = chosen ? size : tuned;
}

// How many parameters a message carries that would have room for so many floats. What is gathered
// takes so few bits that one thread would pack a message for long: it is made that much shorter.
std::int64_t packed_params(const Strategy& strategy, std::int64_t floats) {
  constexpr std::int64_t kMaxGathered = 16;
  return strategy.gathered() ? floats * kMaxGathered
                             : floats * 32 / traits_of(strategy.codec).bits_per_value;
}

// How much may be in flight to a peer on a link between machines.
//
// Something urgent waits for at most half a millisecond of data in flight to the peer, which is one
// slice at 1 Gb/s, or for one message. Where nothing is urgent one message is on its way while the
// receipt of another is. More would only share the link unevenly between the peers: what fills the
// kernel's buffers for one of them is ahead of the sums that the others wait for.
Bytes peer_credit_for(const Job& job, const MessageSize& message) {
  const Bytes usual = Strategy().peer_credit;
  if (job.strategy.order != Order::kPriority) {
    return std::max(usual, 2 * message.bytes());
  }
  const auto half_ms = static_cast<Bytes>(64'000 * job.link.gbps());
  return std::max(std::min(half_ms, usual), message.bytes());
}

}  // namespace

std::int64_t tiny_params(const Job& job) {
  // Between processes of one machine; measured.
  constexpr std::int64_t kInMemory = 8192;
  const Strategy& strategy = job.strategy;
  const CodecTraits& codec = traits_of(strategy.codec);
  const bool by_value = !strategy.travels_whole() && codec.header_bytes == 0;
  if (strategy.algorithm != Algorithm::kBsp || !by_value ||
      strategy.sums_first == SumsFirst::kChunk) {
    return 0;
  }
  return job.topology.on_one_machine()
             ? kInMemory
             : static_cast<std::int64_t>(MessageSize::kMessageNs /
                                         (kFloatBytes * job.link.ns_per_byte));
}

void tune_for_link(Job& job, const ChosenSizes& chosen, bool announced) {
  Strategy& strategy = job.strategy;
  if (strategy.partition == Partition::kSlice && !chosen.slice) {
    strategy.join_params = tiny_params(job);
  }
  const bool segment_is_chosen = chosen.segment || strategy.segment_params == 0;
  if (job.topology.on_one_machine()) {
    // In memory there is no queue to keep short with short hops and a small credit, and fewer
    // messages cost less.
    tune(strategy.segment_params, segment_is_chosen, std::int64_t{262'144});
    tune(strategy.peer_credit, chosen.peer_credit, Bytes{8'000'000});
    return;
  }
  if (!chosen.local_aggregation && !strategy.local_aggregation) {
    strategy.local_aggregation = aggregation_pays(job);
  }
  const MessageSize message = message_size(job.link.ns_per_byte, announced);
  // Where all that is sent is packed, a message of that length carries more parameters.
  const bool packed = strategy.exchange == Exchange::kAllReduce || strategy.servers_pack();
  const std::int64_t params = packed ? packed_params(strategy, message.params) : message.params;
  // The hops of a sum carry its share of a rank, and those of gathered codes all of it.
  const bool shares = strategy.exchange == Exchange::kAllReduce && !strategy.gathered();
  const auto parts = static_cast<std::int64_t>(shares ? AggregationGroups(job).size() : 1);
  tune(strategy.slice_params, chosen.slice, params * parts);
  tune(strategy.segment_params, segment_is_chosen, params);
  tune(strategy.peer_credit, chosen.peer_credit, peer_credit_for(job, message));
  tune(strategy.credit, chosen.credit, std::max(Strategy().credit, 3 * message.bytes()));
}

Result<void> check_driver_sums(const Strategy& strategy, const Topology& topology) {
  if (!strategy.driver_sums()) {
    return {};
  }
  if (strategy.exchange != Exchange::kAllReduce) {
    return Error("exchange " + std::string(name_of(kExchangeNames, strategy.exchange)) +
                 " does not sum between workers; take exchange allreduce");
  }
  if (traits_of(strategy.algorithm).sends == Sends::kOuterGradients) {
    return Error(
        "all processes sum every chunk in every iteration, and algorithm local-steps does not; "
        "take collective auto");
  }
  if (strategy.coded()) {
    return Error("it supports no codec; take codec none");
  }
  if (strategy.order == Order::kPriority) {
    return Error(
        "all processes request sums in the same order, so no gradient can overtake another; take "
        "order fifo or after-backward");
  }
  if (AggregationGroups(strategy, topology).group() > 1) {
    return Error("it sums over all processes; leave --local-aggregation off");
  }
  if (topology.workers_per_host() != 1) {
    return Error(
        "it sums over processes, not over the workers within one; leave --workers-per-host out");
  }
  if (strategy.collective == Collective::kSharedMemory && !topology.on_one_machine()) {
    return Error("the processes are on several machines");
  }
  return {};
}

void tune_sums_for_machine(Job& job) {
  Strategy in_memory = job.strategy;
  in_memory.collective = Collective::kSharedMemory;
  if (!job.strategy.collective && job.topology.hosts() > 1 &&
      check_driver_sums(in_memory, job.topology)) {
    job.strategy = in_memory;
  }
}

}  // namespace sluice
