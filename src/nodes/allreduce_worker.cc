#include "nodes/allreduce_worker.h"

#include <algorithm>
#include <utility>

#include "codecs/size.h"
#include "collectives/choice.h"

namespace sluice {

AllReduceWorker::AllReduceWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map,
                                 NodeId self, Completion& done)
    : BasicWorker(job, chunk_map, self, done),
      runner_(job.strategy, collectives_for(job, *chunk_map), self, AggregationGroups(job),
              chunk_map),
      states_(chunks().size(), State{.applied = job.first, .summed = job.first}),
      sums_(job.strategy.sparse() ? chunks().size() * job.strategy.gradient_slots() : 0) {}

BufferRange AllReduceWorker::landing(const Message& message) const {
  return message.kind == MessageKind::kAllReduce ? gradient_of(message.chunk, message.iteration)
                                                 : runner_.landing(message);
}

void AllReduceWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  states_[chunk.index()].next = iteration;
  if (strategy().driver_sums()) {
    Message message = about(chunk, MessageKind::kAllReduce, self(), iteration);
    message.payload_bytes = coded_size(strategy(), chunks()[chunk].range.size(), iteration);
    effects.send(message, effects.borrow(self(), gradient_of(chunk, iteration)));
  } else if (const auto done = runner_.begin(chunk, iteration, effects)) {
    on_done(*done);
  }
  go_on_if_ready(chunk, effects);
}

void AllReduceWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event);
      received != nullptr && received->message.kind == MessageKind::kAllReduce) {
    on_summed(received->message.chunk, received->message.iteration);
    return go_on_if_ready(received->message.chunk, effects);
  }
  if (const auto* finished = std::get_if<Finished>(&event);
      finished != nullptr && finished->work.kind == WorkKind::kUpdate) {
    State& state = states_[finished->work.chunk.index()];
    state.updating = false;
    state.applied = finished->work.iteration;
    return go_on_if_ready(finished->work.chunk, effects);
  }
  if (const auto done = runner_.handle(event, effects)) {
    on_done(*done);
    go_on_if_ready(done->chunk, effects);
  }
}

void AllReduceWorker::on_done(const CollectiveRunner::Done& done) {
  if (strategy().sparse()) {
    sum_of(done.chunk, done.iteration) = done.sum;
  }
  on_summed(done.chunk, done.iteration);
}

Payload& AllReduceWorker::sum_of(ChunkId chunk, Iteration iteration) {
  return sums_[chunk.index() * strategy().gradient_slots() + gradient_of(chunk, iteration).slot];
}

// Sums may come in another order than their gradients were made.
void AllReduceWorker::on_summed(ChunkId chunk, Iteration iteration) {
  State& state = states_[chunk.index()];
  auto& early = state.summed_early;
  early.push_back(iteration);
  const auto find_next = [&] { return std::find(early.begin(), early.end(), state.summed + 1); };
  for (auto next = find_next(); next != early.end(); next = find_next()) {
    early.erase(next);
    ++state.summed;
  }
}

// The next iteration needs all gradients up to itself less the depth of the pipeline.
void AllReduceWorker::go_on_if_ready(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.next == 0 || state.updating) {
    return;
  }
  const Iteration needed = state.next - (depth_at(state.next) - 1);
  if (state.applied >= needed) {
    const Iteration next = std::exchange(state.next, 0);
    complete(chunk, next, effects);
  } else if (state.summed > state.applied) {
    state.updating = true;
    const Iteration iteration = state.applied + 1;
    if (strategy().sparse() && !strategy().driver_sums()) {
      update_coded(chunk, iteration, BatchShare::all(topology().workers()),
                   std::exchange(sum_of(chunk, iteration), {}), effects);
    } else {
      update(chunk, iteration, BatchShare::all(topology().workers()), effects);
    }
  }
}

Iteration AllReduceWorker::depth_at(Iteration iteration) const {
  const auto depth = static_cast<Iteration>(strategy().gradient_slots());
  return iteration <= strategy().pipeline_warmup ? 1 : depth;
}

}  // namespace sluice
