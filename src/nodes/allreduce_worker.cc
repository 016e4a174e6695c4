#include "nodes/allreduce_worker.h"

#include <algorithm>
#include <utility>

#include "codecs/size.h"

namespace sluice {

AllReduceWorker::AllReduceWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map,
                                 NodeId self, Completion& done)
    : BasicWorker(job, chunk_map, self, done),
      runner_(job, chunk_map, self),
      partly_(chunks().size()),
      normed_(job.first),
      sums_(job.strategy.sparse() ? chunks().size() * job.strategy.gradient_slots() : 0) {
  const Segment fresh{.applied = applied_at(job.first), .summed = job.first};
  for (std::size_t c = 0; c < chunks().size(); ++c) {
    const std::size_t segments = by_segment() ? runner_.segments_of(ChunkId(c)) : 1;
    states_.push_back({.segments = std::vector(segments, fresh)});
  }
}

BufferRange AllReduceWorker::landing(const Message& message) const {
  return message.kind == MessageKind::kAllReduce ? gradient_of(message.chunk, message.iteration)
                                                 : runner_.landing(message);
}

void AllReduceWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  state.next = iteration;
  state.needed = iteration - (depth_at(iteration) - 1);
  state.behind = static_cast<std::size_t>(std::ranges::count_if(
      state.segments, [&](const Segment& segment) { return segment.applied < state.needed; }));
  if (strategy().driver_sums()) {
    Message message = about(chunk, MessageKind::kAllReduce, self(), iteration);
    message.payload_bytes = coded_size(strategy(), chunks()[chunk].range.size(), iteration);
    effects.send(message, effects.borrow(self(), gradient_of(chunk, iteration)));
  } else {
    for (const auto& done : runner_.begin(chunk, iteration, effects)) {
      on_done(done, effects);
    }
  }
  for (std::size_t s = 0; s < state.segments.size(); ++s) {
    update_if_ready(chunk, s, effects);
  }
  complete_if_ready(chunk, effects);
}

void AllReduceWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event);
      received != nullptr && received->message.kind == MessageKind::kAllReduce) {
    return on_summed(received->message.chunk, 0, received->message.iteration, effects);
  }
  const auto* finished = std::get_if<Finished>(&event);
  if (finished != nullptr && finished->work.kind == WorkKind::kUpdate) {
    const Work& work = finished->work;
    return on_updated(work.chunk, work.segment, work.iteration, effects);
  }
  if (finished != nullptr && finished->work.kind == WorkKind::kNorm) {
    return on_norm(finished->work.iteration, effects);
  }
  for (const auto& done : runner_.handle(event, effects)) {
    on_done(done, effects);
  }
}

void AllReduceWorker::on_done(const CollectiveRunner::Done& done, Effects& effects) {
  if (strategy().sparse()) {
    sum_of(done.chunk, done.iteration) = done.sum;
  }
  if (by_segment()) {
    return on_summed(done.chunk, done.segment, done.iteration, effects);
  }
  if (++partly_[done.chunk.index()] == runner_.segments_of(done.chunk)) {
    partly_[done.chunk.index()] = 0;
    on_summed(done.chunk, 0, done.iteration, effects);
  }
}

Payload& AllReduceWorker::sum_of(ChunkId chunk, Iteration iteration) {
  return sums_[chunk.index() * strategy().gradient_slots() + gradient_of(chunk, iteration).slot];
}

// Sums may come in another order than their gradients were made.
void AllReduceWorker::on_summed(ChunkId chunk, std::size_t index, Iteration iteration,
                                Effects& effects) {
  Segment& segment = states_[chunk.index()].segments[index];
  auto& early = segment.summed_early;
  early.push_back(iteration);
  const auto find_next = [&] { return std::find(early.begin(), early.end(), segment.summed + 1); };
  for (auto next = find_next(); next != early.end(); next = find_next()) {
    early.erase(next);
    ++segment.summed;
  }
  if (strategy().sums_first == SumsFirst::kModel && ++chunks_summed_ == chunks().size()) {
    chunks_summed_ = 0;
    find_norm(iteration, topology().workers(), effects);
  }
  update_if_ready(chunk, index, effects);
}

void AllReduceWorker::on_norm(Iteration iteration, Effects& effects) {
  normed_ = iteration;
  for (std::size_t c = 0; c < chunks().size(); ++c) {
    update_if_ready(ChunkId(c), 0, effects);
  }
}

void AllReduceWorker::on_updated(ChunkId chunk, std::size_t index, Iteration iteration,
                                 Effects& effects) {
  State& state = states_[chunk.index()];
  Segment& segment = state.segments[index];
  segment.updating = false;
  segment.applied = iteration;
  if (segment.applied == state.needed) {
    --state.behind;
    return complete_if_ready(chunk, effects);
  }
  update_if_ready(chunk, index, effects);
}

void AllReduceWorker::update_if_ready(ChunkId chunk, std::size_t index, Effects& effects) {
  const State& state = states_[chunk.index()];
  Segment& segment = states_[chunk.index()].segments[index];
  if (state.next == 0 || segment.updating || segment.applied >= state.needed ||
      segment.summed == segment.applied) {
    return;
  }
  if (strategy().sums_first == SumsFirst::kModel && segment.applied == normed_) {
    return;
  }
  segment.updating = true;
  const Iteration iteration = segment.applied + 1;
  const BatchShare all = BatchShare::all(topology().workers());
  if (strategy().learners_update) {
    on_updated(chunk, index, iteration, effects);
  } else if (!by_segment()) {
    update(chunk, iteration, all, effects);
  } else if (strategy().sparse()) {
    update_coded(chunk, iteration, all, std::exchange(sum_of(chunk, iteration), {}), effects);
  } else {
    update_segment(chunk, static_cast<std::uint32_t>(index), runner_.range_of(chunk, index),
                   iteration, all, effects);
  }
}

void AllReduceWorker::complete_if_ready(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.next != 0 && state.behind == 0) {
    complete(chunk, std::exchange(state.next, 0), effects);
  }
}

Iteration AllReduceWorker::applied_at(Iteration iteration) const {
  const Iteration together = std::min(iteration, strategy().pipeline_warmup);
  return std::max(iteration - (depth_at(iteration) - 1), together);
}

Iteration AllReduceWorker::depth_at(Iteration iteration) const {
  const auto depth = static_cast<Iteration>(strategy().gradient_slots());
  return iteration <= strategy().pipeline_warmup ? 1 : depth;
}

}  // namespace sluice
