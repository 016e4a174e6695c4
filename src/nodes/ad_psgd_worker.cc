#include "nodes/ad_psgd_worker.h"

#include <fmt/format.h>

#include <utility>

#include "nodes/random_peer.h"
#include "wire/bad_message.h"

namespace sluice {

// ---- Active -------------------------------------------------------------------------------------

ActiveWorker::ActiveWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                           Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done), states_(chunks().size()) {}

void ActiveWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  update(chunk, iteration, BatchShare{}, effects);  // its own batch is the whole
}

void ActiveWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    on_answer(*received, effects);
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    State& state = states_[finished->work.chunk.index()];
    if (finished->work.kind == WorkKind::kSwapped) {
      state.sent.reset();
    }
    if (!ended()) {
      state.stepped = finished->work.iteration;
      go_on_if_ready(finished->work.chunk, effects);
    }
  }
}

// All chunks are complete: each has been swapped and lacks at most the answer.
void ActiveWorker::on_ended(Iteration iteration, Effects& effects) {
  BasicWorker::on_ended(iteration, effects);
  for (std::size_t c = 0; c < states_.size(); ++c) {
    if (states_[c].mean) {
      move_by_answer(ChunkId(c), iteration, effects);
    }
  }
}

// The answer that is missing does not come. One that is here counts.
void ActiveWorker::on_peer_lost(HostId host, Effects& effects) {
  BasicWorker::on_peer_lost(host, effects);
  for (std::size_t c = 0; c < states_.size(); ++c) {
    State& state = states_[c];
    if (state.sent && !state.mean && topology().host_of(state.partner) == host) {
      state.sent.reset();
      go_on_if_ready(ChunkId(c), effects);
    }
  }
}

void ActiveWorker::on_answer(const Received& answer, Effects& effects) {
  State& state = states_[answer.message.chunk.index()];
  if (!state.sent || state.mean) {
    throw BadMessage(topology().host_of(answer.message.from).index(),
                     fmt::format("it answers a swap of chunk {} that this worker has not asked for",
                                 answer.message.chunk.index()));
  }
  state.mean = answer.payload;
  if (ended()) {
    return move_by_answer(answer.message.chunk, *ended(), effects);
  }
  go_on_if_ready(answer.message.chunk, effects);
}

void ActiveWorker::go_on_if_ready(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.stepped == 0 || (state.sent && !state.mean)) {
    return;
  }
  const Iteration iteration = std::exchange(state.stepped, 0);
  if (state.mean) {
    return move_by_answer(chunk, iteration, effects);
  }
  send_swap(chunk, iteration, effects);
  complete(chunk, iteration, effects);
}

void ActiveWorker::move_by_answer(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  Work work = work_on(chunk, WorkKind::kSwapped, iteration);
  work.sources = {*std::exchange(state.mean, std::nullopt), *state.sent};
  effects.start(std::move(work));
}

void ActiveWorker::send_swap(ChunkId chunk, Iteration iteration, Effects& effects) {
  const auto peer = random_peer(living(), strategy().seed, self(), iteration, 1, 2);
  if (!peer) {
    return;
  }
  const Payload sent = effects.copy(self(), parameters_of(chunk));
  states_[chunk.index()].partner = *peer;
  states_[chunk.index()].sent = sent;
  send(about(chunk, MessageKind::kSwap, *peer, iteration), sent, effects);
}

// ---- Passive ------------------------------------------------------------------------------------

PassiveWorker::PassiveWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                             Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done), states_(chunks().size()) {}

void PassiveWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  states_[chunk.index()].next = iteration;
  work_if_free(chunk, effects);
}

void PassiveWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    states_[received->message.chunk.index()].asked.push_back(*received);
    work_if_free(received->message.chunk, effects);
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    on_finished(*finished, effects);
    work_if_free(finished->work.chunk, effects);
  }
}

void PassiveWorker::on_finished(const Finished& finished, Effects& effects) {
  const Work& work = finished.work;
  State& state = states_[work.chunk.index()];
  state.working = false;
  if (work.kind == WorkKind::kSwap) {
    state.mean = finished.output;
    send(about(work.chunk, MessageKind::kSwapped, work.origin, work.iteration), finished.output,
         effects);
  } else if (work.kind == WorkKind::kUpdate) {
    state.next = 0;
    complete(work.chunk, work.iteration, effects);
  }
}

void PassiveWorker::on_ended(Iteration iteration, Effects& effects) {
  BasicWorker::on_ended(iteration, effects);
  for (std::size_t c = 0; c < states_.size(); ++c) {
    work_if_free(ChunkId(c), effects);
  }
}

// Nobody waits for these answers any more.
void PassiveWorker::on_peer_lost(HostId host, Effects& effects) {
  BasicWorker::on_peer_lost(host, effects);
  for (State& state : states_) {
    std::erase_if(state.asked,
                  [&](const Received& asked) { return !living().has(asked.message.from); });
  }
}

// The own step first: its worker waits for it. Then the answers: others wait for them.
void PassiveWorker::work_if_free(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.working) {
    return;
  }
  if (state.next != 0 && state.mean) {
    take_over(chunk, state.next, effects);
  } else if (state.next != 0) {
    state.working = true;
    update(chunk, state.next, BatchShare{}, effects);  // its own batch is the whole
  } else if (!state.asked.empty()) {
    start_swap(chunk, effects);
  } else if (ended() && state.mean) {
    take_over(chunk, *ended(), effects);
  }
}

void PassiveWorker::take_over(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  Work work = work_on(chunk, WorkKind::kBlend, iteration);
  work.keep = 0;
  work.sources = {*std::exchange(state.mean, std::nullopt)};
  state.working = true;
  effects.start(std::move(work));
}

// The worker may compute with the parameters meanwhile: they stay as they are until its next step.
void PassiveWorker::start_swap(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  const Received asked = std::move(state.asked.front());
  state.asked.pop_front();
  state.working = true;
  Work work = work_on(chunk, WorkKind::kSwap, asked.message.iteration);
  work.origin = asked.message.from;
  work.sources = {asked.payload,
                  state.mean ? *state.mean : effects.borrow(self(), parameters_of(chunk))};
  effects.start(std::move(work));
}

}  // namespace sluice
