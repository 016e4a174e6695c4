#pragma once

#include <map>
#include <optional>
#include <utility>

#include "scheduling/admission_queue.h"
#include "wire/message.h"

namespace sluice {

// A serial channel on which all workers together reduce one chunk at a time. A chunk is ready when
// the last worker has joined; the strategy's order chooses among those that are ready.
class AllReduceChannel {
 public:
  AllReduceChannel(Order order, std::size_t workers) : workers_(workers), queue_(order, 1) {}

  void join(const Message& request) {
    const auto joined = joined_.try_emplace({request.chunk, request.iteration}, 0).first;
    if (++joined->second == workers_) {
      joined_.erase(joined);
      queue_.push(urgency(request.iteration, request.priority), 1, request);
    }
  }
  // The request that may begin now, if the channel is free and one waits.
  std::optional<Message> begin() {
    if (const auto next = queue_.take()) {
      running_ = *next;
      return next;
    }
    return std::nullopt;
  }
  Message end() {
    queue_.give_back(1);
    return running_;
  }

  std::int64_t overtakings() const { return queue_.overtakings(); }
  // Counts no overtakings of earlier iterations.
  void count_from(Iteration iteration) { queue_.count_from(urgency(iteration, 0)); }

 private:
  std::size_t workers_;
  std::map<std::pair<ChunkId, Iteration>, std::size_t> joined_;
  AdmissionQueue<Message> queue_;
  Message running_;
};

}  // namespace sluice
