#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "formats/cluster.h"
#include "scheduling/admission_queue.h"
#include "wire/message.h"

namespace sluice {

// A serial channel on which all workers together reduce one chunk at a time. A chunk is ready when
// the last worker has joined; the strategy's order chooses among those that are ready. Without an
// all-reduce table in the cluster nothing goes there.
class AllReduceChannel {
 public:
  // Reductions and overtakings of earlier iterations are not counted.
  AllReduceChannel(const Cluster& cluster, Order order, Iteration first_counted);

  void join(const Message& request);
  // If the channel is free and a request waits, it begins now: when it ends.
  std::optional<Time> begin(Time now);
  struct Reduction {
    Message request;
    Time begun;
  };
  // The one that has begun.
  Reduction end();

  std::int64_t reductions() const { return reductions_; }
  Bytes bytes() const { return bytes_; }
  Duration busy() const { return busy_; }
  std::int64_t overtakings() const { return queue_.overtakings(); }

 private:
  const Cluster& cluster_;
  Iteration first_counted_;
  std::map<std::pair<ChunkId, Iteration>, std::size_t> joined_;
  AdmissionQueue<Message> queue_;
  Reduction running_;
  std::int64_t reductions_ = 0;
  Bytes bytes_ = 0;
  Duration busy_{0};
};

}  // namespace sluice
