#include "drivers/virtual/allreduce_channel.h"

namespace sluice {

AllReduceChannel::AllReduceChannel(const Cluster& cluster, Order order, Iteration first_counted)
    : cluster_(cluster), first_counted_(first_counted), queue_(order, 1) {
  queue_.count_from(urgency(first_counted, 0));
}

void AllReduceChannel::join(const Message& request) {
  const auto joined = joined_.try_emplace({request.chunk, request.iteration}, 0).first;
  if (++joined->second == cluster_.topology.workers()) {
    joined_.erase(joined);
    queue_.push(urgency(request.iteration, request.priority), 1, request);
  }
}

std::optional<Time> AllReduceChannel::begin(Time now) {
  const auto next = queue_.take();
  if (!next) {
    return std::nullopt;
  }
  running_ = {*next, now};
  const AllReduceCost& cost = *cluster_.allreduce;
  const Duration length = cost.startup + cluster_.sync +
                          from_ns(static_cast<double>(next->payload_bytes) * cost.ns_per_byte);
  if (next->iteration >= first_counted_) {
    ++reductions_;
    bytes_ += next->payload_bytes;
    busy_ += length;
  }
  return now + length;
}

AllReduceChannel::Reduction AllReduceChannel::end() {
  queue_.give_back(1);
  return running_;
}

}  // namespace sluice
