#include "nodes/stale_worker.h"

namespace sluice {

StaleWorker::StaleWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                         Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done),
      states_(chunks().size(),
              State{.slowest = job.first,
                    .lent = std::vector<bool>(job.strategy.gradient_slots(), false)}) {}

void StaleWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  state.next = iteration;
  state.updated = false;
  if (strategy().coded()) {
    return pack(chunk, iteration, effects);
  }
  push(chunk, iteration, effects.borrow(self(), gradient_of(chunk, iteration)), effects);
}

// A packed gradient is a copy, and the copy is what the worker applies too: no more and no less
// than what the server gets.
void StaleWorker::push(ChunkId chunk, Iteration iteration, Payload gradient, Effects& effects) {
  State& state = states_[chunk.index()];
  const bool packed = strategy().coded();
  const BatchShare share{1, static_cast<std::uint32_t>(living().workers())};
  Message message = about(chunk, MessageKind::kPush, server_of(chunk), iteration);
  message.wants_return = !packed;
  state.lent[strategy().gradient_slot(iteration)] = !packed;
  send(message, gradient, effects);
  if (iteration - state.slowest > strategy().staleness) {
    send(about(chunk, MessageKind::kPull, server_of(chunk), iteration), {}, effects);
  } else if (packed) {
    update_coded(chunk, iteration, share, std::move(gradient), effects);
  } else {
    update(chunk, iteration, share, effects);
  }
}

void StaleWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    State& state = states_[received->message.chunk.index()];
    state.slowest = received->message.slowest;
    if (strategy().sparse()) {
      return patch(*received, effects);
    }
    state.updated = true;
    go_on_if_ready(received->message.chunk, effects);
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    if (work.kind == WorkKind::kEncode) {
      return push(work.chunk, work.iteration, finished->output, effects);
    }
    states_[work.chunk.index()].updated = true;
    go_on_if_ready(work.chunk, effects);
  } else if (const auto* returned = std::get_if<Returned>(&event)) {
    const Message& push = returned->message;
    states_[push.chunk.index()].lent[strategy().gradient_slot(push.iteration)] = false;
    go_on_if_ready(push.chunk, effects);
  }
}

// The next backward pass overwrites the older of the gradients, so only the latest may still be on
// its way. They may come back in any order.
void StaleWorker::go_on_if_ready(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.updated && !state.lent[strategy().gradient_slot(state.next + 1)]) {
    state.updated = false;
    complete(chunk, state.next, effects);
  }
}

}  // namespace sluice
