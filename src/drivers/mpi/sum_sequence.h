#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "wire/message.h"

namespace sluice {

// The order in which this process has MPI sum gradients. MPI matches the calls of all processes by
// their order, so all must make them in the same order, although their gradients become final in
// any order. The order is by iteration, and within an iteration from the last chunk to the first,
// as the backward pass reaches them. A sum whose turn has not come waits for those before it.
//
// Few are in flight at a time: the first of them is the most urgent.
class SumSequence {
 public:
  // The first gradients go into the parameters of this iteration.
  SumSequence(std::size_t chunks, Iteration first)
      : chunks_(static_cast<std::int64_t>(chunks)), next_(first * chunks_) {}

  // This process's gradient is final. Every chunk must come once per iteration.
  void add(const Message& request) {
    const auto chunk = static_cast<std::int64_t>(request.chunk.index());
    waiting_.emplace(request.iteration * chunks_ + (chunks_ - 1 - chunk), request);
  }
  // The request whose sum should begin now, if there is one.
  std::optional<Message> begin() {
    const auto first = waiting_.begin();
    if (in_flight_ == kMax || first == waiting_.end() || first->first != next_) {
      return std::nullopt;
    }
    const Message request = first->second;
    waiting_.erase(first);
    ++next_;
    ++in_flight_;
    return request;
  }
  // One of those in flight is complete.
  void end() { --in_flight_; }

  bool empty() const { return waiting_.empty(); }

 private:
  static constexpr int kMax = 2;

  std::int64_t chunks_;
  std::int64_t next_;                        // the place of the sum that begins next
  std::map<std::int64_t, Message> waiting_;  // by place
  int in_flight_ = 0;
};

}  // namespace sluice
