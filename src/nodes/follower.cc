#include "nodes/follower.h"

#include "model/aggregation_groups.h"

namespace sluice {

BufferRange Follower::landing(const Message& message) const {
  return strategy().learners_update ? gradient_of(message.chunk, message.iteration)
                                    : parameters_of(message.chunk);
}

void Follower::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  send(about(chunk, MessageKind::kGradient,
             AggregationGroups(strategy(), topology()).leader_of(self()), iteration),
       effects.borrow(self(), gradient_of(chunk, iteration)), effects);
}

void Follower::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    complete(received->message.chunk, received->message.iteration, effects);
  }
}

}  // namespace sluice
