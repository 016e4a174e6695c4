#include "algorithms/worker.h"

namespace sluice {

Worker::Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : first_chunk_(job.strategy.uses_servers() && job.strategy.staggered ? self.index() : 0),
      topology_(job.topology),
      chunks_(std::move(chunks)),
      self_(self),
      gradients_missing_(layers_per_chunk(*chunks_)),
      chunks_missing_(chunks_per_layer(*chunks_)) {}

void Worker::handle(const Event& event, Effects& effects) {
  if (std::holds_alternative<Started>(event)) {
    for (std::size_t l = 0; l < chunks_->layers(); ++l) {
      effects.release(self_, LayerId(l), 0);
    }
  } else if (const auto* ready = std::get_if<GradientReady>(&event)) {
    on_gradient(*ready, effects);
  } else if (!std::holds_alternative<BackwardDone>(event)) {
    on_network(event, effects);
  }
}

void Worker::on_gradient(const GradientReady& event, Effects& effects) {
  const auto chunks = chunks_->chunks_of(event.layer);
  if (chunks.empty()) {
    effects.release(self_, event.layer, event.iteration + 1);
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkId chunk = chunks[(first_chunk_ + i) % chunks.size()];
    if (gradients_missing_.arrive(chunk.index())) {
      exchange(chunk, event.iteration + 1, effects);
    }
  }
}

void Worker::complete(ChunkId chunk, Iteration iteration, Effects& effects) {
  for (const LayerId layer : chunks_->layers_of(chunk)) {
    if (chunks_missing_.arrive(layer.index())) {
      effects.release(self_, layer, iteration);
    }
  }
}

Message Worker::about(ChunkId chunk, MessageKind kind, NodeId to, Iteration iteration) const {
  Message message;
  message.kind = kind;
  message.priority = (*chunks_)[chunk].priority;
  message.from = self_;
  message.to = to;
  message.chunk = chunk;
  message.iteration = iteration;
  return message;
}

}  // namespace sluice
