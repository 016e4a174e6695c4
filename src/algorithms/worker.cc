#include "algorithms/worker.h"

#include "codecs/size.h"

namespace sluice {

Worker::Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : strategy_(job.strategy),
      first_chunk_(job.strategy.uses_servers() && job.strategy.staggered ? self.index() : 0),
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
  } else if (const auto* done = std::get_if<BackwardDone>(&event)) {
    on_backward_done(*done, effects);
  } else {
    on_network(event, effects);
  }
}

BufferRange Worker::landing(const Message& message) const {
  const bool whole = message.kind == MessageKind::kParameters && !strategy_.sparse();
  return whole ? parameters_of(message.chunk) : BufferRange{};
}

void Worker::on_next_iteration(Iteration /*iteration*/, Effects& /*effects*/) {}

void Worker::on_gradient(const GradientReady& event, Effects& effects) {
  const auto chunks = chunks_->chunks_of(event.layer);
  if (chunks.empty()) {
    effects.release(self_, event.layer, event.iteration + 1);
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkId chunk = chunks[(first_chunk_ + i) % chunks.size()];
    if (!gradients_missing_.arrive(chunk.index())) {
      continue;
    }
    if (strategy_.order == Order::kAfterBackward) {
      held_back_.push_back(chunk);
    } else {
      exchange(chunk, event.iteration + 1, effects);
    }
  }
}

void Worker::on_backward_done(const BackwardDone& event, Effects& effects) {
  for (const ChunkId chunk : std::exchange(held_back_, {})) {
    exchange(chunk, event.iteration + 1, effects);
  }
  on_next_iteration(event.iteration + 1, effects);
}

void Worker::complete(ChunkId chunk, Iteration iteration, Effects& effects) {
  for (const LayerId layer : chunks_->layers_of(chunk)) {
    if (chunks_missing_.arrive(layer.index())) {
      effects.release(self_, layer, iteration);
    }
  }
}

void Worker::update(ChunkId chunk, Iteration iteration, std::size_t contributors,
                    Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kUpdate, iteration);
  work.contributors = static_cast<std::uint32_t>(contributors);
  work.sources.push_back(effects.borrow(self_, gradient_of(chunk, iteration)));
  effects.start(std::move(work));
}

void Worker::update_coded(ChunkId chunk, Iteration iteration, std::size_t contributors,
                          Payload gradient, Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kUpdate, iteration);
  work.coded = true;
  work.contributors = static_cast<std::uint32_t>(contributors);
  work.sources.push_back(std::move(gradient));
  effects.start(std::move(work));
}

void Worker::pack(ChunkId chunk, Iteration iteration, Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kEncode, iteration);
  work.slot = gradient_of(chunk, iteration).slot;
  work.feedback = true;
  work.output_bytes = coded_size(strategy_, work.range.size(), iteration);
  effects.start(std::move(work));
}

void Worker::patch(const Received& changes, Effects& effects) const {
  Work work = work_on(changes.message.chunk, WorkKind::kPatch, changes.message.iteration);
  work.coded = true;
  work.sources.push_back(changes.payload);
  effects.start(std::move(work));
}

Work Worker::work_on(ChunkId chunk, WorkKind kind, Iteration iteration) const {
  Work work;
  work.kind = kind;
  work.priority = (*chunks_)[chunk].priority;
  work.node = self_;
  work.origin = self_;
  work.chunk = chunk;
  work.iteration = iteration;
  work.range = (*chunks_)[chunk].range;
  return work;
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

void Worker::send(Message message, Payload payload, Effects& effects) const {
  message.payload_bytes = payload.size();
  effects.send(message, std::move(payload));
}

BufferRange Worker::parameters_of(ChunkId chunk) const {
  return {Buffer::kParameters, (*chunks_)[chunk].range};
}

BufferRange Worker::gradient_of(ChunkId chunk, Iteration iteration) const {
  return {Buffer::kGradients, (*chunks_)[chunk].range,
          static_cast<std::size_t>(iteration - 1) % strategy_.gradient_slots()};
}

}  // namespace sluice
