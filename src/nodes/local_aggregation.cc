#include "nodes/local_aggregation.h"

#include <utility>

namespace sluice {
namespace {

bool is_of_sum(const Message& message) { return message.kind == MessageKind::kParameters; }

}  // namespace

LocalAggregation::LocalAggregation(const Job& job, std::shared_ptr<const ChunkMap> chunk_map,
                                   NodeId self, Completion& done, MakeAlgorithm* make)
    : BasicWorker(job, chunk_map, self, done),
      groups_(job),
      order_(job, self),
      local_(job, chunk_map, self),
      sums_missing_(chunks_per_layer(*chunk_map)),
      lent_(std::vector(chunk_map->size(), static_cast<std::uint32_t>(groups_.group() - 1))),
      algorithm_(make(job, chunk_map, self, *this)) {}

void LocalAggregation::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (local_.on_own(chunk, iteration, effects)) {
    on_local_sum(chunk, iteration, effects);
  }
}

void LocalAggregation::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event);
      received != nullptr && received->message.kind == MessageKind::kGradient) {
    if (local_.on_lent(*received, effects)) {
      on_local_sum(received->message.chunk, received->message.iteration, effects);
    }
    return;
  }
  if (const auto* finished = std::get_if<Finished>(&event);
      finished != nullptr && finished->work.kind == WorkKind::kReduce &&
      finished->work.origin != self()) {
    if (local_.on_added(*finished, effects)) {
      on_local_sum(finished->work.chunk, finished->work.iteration, effects);
    }
    return;
  }
  if (const auto* returned = std::get_if<Returned>(&event);
      returned != nullptr && is_of_sum(returned->message)) {
    if (lent_.arrive(returned->message.chunk.index())) {
      complete(returned->message.chunk, returned->message.iteration, effects);
    }
    return;
  }
  algorithm_->on_network(event, effects);
}

void LocalAggregation::on_next_iteration(Iteration iteration, Effects& effects) {
  algorithm_->on_next_iteration(iteration, effects);
}

void LocalAggregation::on_started(Iteration iteration, Effects& effects) {
  algorithm_->on_started(iteration, effects);
}

void LocalAggregation::on_ended(Iteration iteration, Effects& effects) {
  algorithm_->on_ended(iteration, effects);
}

void LocalAggregation::on_peer_lost(HostId host, Effects& effects) {
  algorithm_->on_peer_lost(host, effects);
}

BufferRange LocalAggregation::landing(const Message& message) const {
  return algorithm_->landing(message);
}

// Codec dgc clips a layer as one, so all of its chunks are summed before the first is packed. A
// chunk of several layers holds all of each.
void LocalAggregation::on_local_sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  const LayerId layer = chunks().layers_of(chunk).front();
  const auto of_layer = chunks().chunks_of(layer);
  if (!strategy().sparse() || of_layer.size() == 1) {
    return algorithm_->exchange(chunk, iteration, effects);
  }
  if (sums_missing_.arrive(layer.index())) {
    order_.for_each(of_layer,
                    [&](ChunkId each) { algorithm_->exchange(each, iteration, effects); });
  }
}

void LocalAggregation::on_complete(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (strategy().learners_update) {
    return pass_on_sum(chunk, iteration, effects);
  }
  pass_on_parameters(chunk, iteration, effects);
  complete(chunk, iteration, effects);
}

// In a pipeline the next update may come while the others still read this one's result.
void LocalAggregation::pass_on_parameters(ChunkId chunk, Iteration iteration, Effects& effects) {
  const BufferRange parameters = parameters_of(chunk);
  for (std::size_t i = 1; i < groups_.group(); ++i) {
    const NodeId follower(self().index() + i);
    Payload payload = strategy().gradient_slots() > 1 ? effects.copy(self(), parameters)
                                                      : effects.borrow(self(), parameters);
    send(about(chunk, MessageKind::kParameters, follower, iteration), std::move(payload), effects);
  }
}

// The leader's next gradient takes the place of the sum, and does not wait for the followers: so
// the chunk is complete when they have taken it.
void LocalAggregation::pass_on_sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  for (std::size_t i = 1; i < groups_.group(); ++i) {
    const NodeId follower(self().index() + i);
    Message message = about(chunk, MessageKind::kParameters, follower, iteration);
    message.wants_return = true;
    send(message, effects.borrow(self(), gradient_of(chunk, iteration)), effects);
  }
}

}  // namespace sluice
