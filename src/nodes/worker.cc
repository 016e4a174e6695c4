#include "nodes/worker.h"

#include "codecs/size.h"
#include "partition/about.h"

namespace sluice {

Worker::Worker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : strategy_(job.strategy),
      first_(job.first),
      first_chunk_(job.strategy.uses_servers() && job.strategy.staggered ? self.index() : 0),
      topology_(job.topology),
      groups_(job),
      chunks_(std::move(chunks)),
      self_(self),
      is_leader_(groups_.leader_of(self) == self),
      local_(job, chunks_, self),
      gradients_missing_(layers_per_chunk(*chunks_)),
      sums_missing_(chunks_per_layer(*chunks_)),
      chunks_missing_(chunks_per_layer(*chunks_)) {}

void Worker::handle(const Event& event, Effects& effects) {
  if (std::holds_alternative<Started>(event)) {
    for (std::size_t l = 0; l < chunks_->layers(); ++l) {
      effects.release(self_, LayerId(l), first_);
    }
  } else if (const auto* ready = std::get_if<GradientReady>(&event)) {
    on_gradient(*ready, effects);
  } else if (const auto* done = std::get_if<BackwardDone>(&event)) {
    on_backward_done(*done, effects);
  } else if (!sum_locally(event, effects)) {
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
      on_chunk(chunk, event.iteration + 1, effects);
    }
  }
}

void Worker::on_chunk(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (!is_leader_) {
    exchange(chunk, iteration, effects);
  } else if (local_.on_own(chunk, iteration, effects)) {
    on_local_sum(chunk, iteration, effects);
  }
}

// Codec dgc clips a layer as one, so all of its chunks are summed before the first is packed. A
// chunk of several layers holds all of each.
void Worker::on_local_sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  const LayerId layer = chunks_->layers_of(chunk).front();
  const auto chunks = chunks_->chunks_of(layer);
  if (!strategy_.sparse() || groups_.group() == 1 || chunks.size() == 1) {
    return exchange(chunk, iteration, effects);
  }
  if (sums_missing_.arrive(layer.index())) {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      exchange(chunks[(first_chunk_ + i) % chunks.size()], iteration, effects);
    }
  }
}

// True if the event was about the gradients of others on this machine.
bool Worker::sum_locally(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event);
      received != nullptr && received->message.kind == MessageKind::kGradient) {
    if (local_.on_lent(*received, effects)) {
      on_local_sum(received->message.chunk, received->message.iteration, effects);
    }
    return true;
  }
  if (const auto* finished = std::get_if<Finished>(&event);
      finished != nullptr && finished->work.kind == WorkKind::kReduce &&
      finished->work.origin != self_) {
    if (local_.on_added(*finished, effects)) {
      on_local_sum(finished->work.chunk, finished->work.iteration, effects);
    }
    return true;
  }
  return false;
}

void Worker::on_backward_done(const BackwardDone& event, Effects& effects) {
  for (const ChunkId chunk : std::exchange(held_back_, {})) {
    on_chunk(chunk, event.iteration + 1, effects);
  }
  on_next_iteration(event.iteration + 1, effects);
}

// In a pipeline the next update may come while the others still read this one's result.
void Worker::pass_on(ChunkId chunk, Iteration iteration, Effects& effects) {
  const BufferRange parameters = parameters_of(chunk);
  for (std::size_t i = 1; is_leader_ && i < groups_.group(); ++i) {
    const NodeId follower(self_.index() + i);
    Payload payload = strategy_.gradient_slots() > 1 ? effects.copy(self_, parameters)
                                                     : effects.borrow(self_, parameters);
    send(about(chunk, MessageKind::kParameters, follower, iteration), std::move(payload), effects);
  }
}

void Worker::complete(ChunkId chunk, Iteration iteration, Effects& effects) {
  pass_on(chunk, iteration, effects);
  for (const LayerId layer : chunks_->layers_of(chunk)) {
    if (chunks_missing_.arrive(layer.index())) {
      effects.release(self_, layer, iteration);
    }
  }
}

void Worker::update(ChunkId chunk, Iteration iteration, const BatchShare& share,
                    Effects& effects) const {
  apply(chunk, iteration, share, effects.borrow(self_, gradient_of(chunk, iteration)), false,
        effects);
}

void Worker::update_coded(ChunkId chunk, Iteration iteration, const BatchShare& share,
                          Payload gradient, Effects& effects) const {
  apply(chunk, iteration, share, std::move(gradient), true, effects);
}

void Worker::apply(ChunkId chunk, Iteration iteration, const BatchShare& share, Payload gradient,
                   bool coded, Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kUpdate, iteration);
  work.coded = coded;
  work.contributors = share.contributors;
  work.workers = share.workers;
  work.sources.push_back(std::move(gradient));
  effects.start(std::move(work));
}

void Worker::pack(ChunkId chunk, Iteration iteration, Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kEncode, iteration);
  work.slot = gradient_of(chunk, iteration).slot;
  work.feedback = strategy_.error_feedback;
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
  return sluice::work_on(*chunks_, chunk, kind, self_, iteration);
}

Message Worker::about(ChunkId chunk, MessageKind kind, NodeId to, Iteration iteration) const {
  return message_about(*chunks_, chunk, kind, self_, to, iteration);
}

void Worker::send(Message message, Payload payload, Effects& effects) const {
  message.payload_bytes = payload.size();
  effects.send(message, std::move(payload));
}

BufferRange Worker::parameters_of(ChunkId chunk) const {
  return {Buffer::kParameters, (*chunks_)[chunk].range};
}

BufferRange Worker::gradient_of(ChunkId chunk, Iteration iteration) const {
  return {Buffer::kGradients, (*chunks_)[chunk].range, strategy_.gradient_slot(iteration)};
}

}  // namespace sluice
