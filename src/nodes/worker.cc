#include "nodes/worker.h"

#include <utility>

namespace sluice {

Worker::Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
               const std::function<MakeAlgorithm>& make)
    : after_backward_(job.strategy.order == Order::kAfterBackward),
      order_(job, self),
      chunks_(std::move(chunks)),
      self_(self),
      gradients_missing_(layers_per_chunk(*chunks_)),
      chunks_missing_(chunks_per_layer(*chunks_)),
      algorithm_(make(job, chunks_, self, *this)) {}

void Worker::handle(const Event& event, Effects& effects) {
  if (const auto* started = std::get_if<Started>(&event)) {
    algorithm_->on_started(started->iteration, effects);
    for (std::size_t l = 0; l < chunks_->layers(); ++l) {
      effects.release(self_, LayerId(l), started->iteration);
    }
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    algorithm_->on_ended(ended->iteration, effects);
  } else if (const auto* ready = std::get_if<GradientReady>(&event)) {
    on_gradient(*ready, effects);
  } else if (const auto* done = std::get_if<BackwardDone>(&event)) {
    on_backward_done(*done, effects);
  } else if (const auto* lost = std::get_if<PeerLost>(&event)) {
    algorithm_->on_peer_lost(lost->host, effects);
  } else if (const auto* joined = std::get_if<PeerJoined>(&event)) {
    algorithm_->on_peer_joined(joined->host);
  } else {
    algorithm_->on_network(event, effects);
  }
}

BufferRange Worker::landing(const Message& message) const { return algorithm_->landing(message); }

void Worker::on_gradient(const GradientReady& event, Effects& effects) {
  const auto chunks = chunks_->chunks_of(event.layer);
  if (chunks.empty()) {
    effects.release(self_, event.layer, event.iteration + 1);
  }
  order_.for_each(chunks, [&](ChunkId chunk) {
    if (!gradients_missing_.arrive(chunk.index())) {
      return;
    }
    if (after_backward_) {
      held_back_.push_back(chunk);
    } else {
      algorithm_->exchange(chunk, event.iteration + 1, effects);
    }
  });
}

void Worker::on_backward_done(const BackwardDone& event, Effects& effects) {
  for (const ChunkId chunk : std::exchange(held_back_, {})) {
    algorithm_->exchange(chunk, event.iteration + 1, effects);
  }
  algorithm_->on_next_iteration(event.iteration + 1, effects);
}

void Worker::on_complete(ChunkId chunk, Iteration iteration, Effects& effects) {
  for (const LayerId layer : chunks_->layers_of(chunk)) {
    if (chunks_missing_.arrive(layer.index())) {
      effects.release(self_, layer, iteration);
    }
  }
}

}  // namespace sluice
