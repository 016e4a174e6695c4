#include "nodes/d_psgd_worker.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sluice {

DPsgdWorker::DPsgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                         Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done), states_(chunks().size()) {
  const std::size_t workers = topology().workers();
  const std::set<std::size_t> both{(self.index() + workers - 1) % workers,
                                   (self.index() + 1) % workers};
  for (const std::size_t rank : both) {
    if (topology().worker(rank) != self) {
      neighbours_.push_back(topology().worker(rank));
    }
  }
}

void DPsgdWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  update(chunk, iteration, BatchShare{}, effects);  // its own batch is the whole
}

void DPsgdWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const ChunkId chunk = received->message.chunk;
    states_[chunk.index()].inbox.push_back(*received);
    go_on_if_ready(chunk, effects);
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    State& state = states_[work.chunk.index()];
    if (work.kind == WorkKind::kUpdate) {
      state.next = work.iteration;
      send_to_neighbours(work.chunk, work.iteration, effects);
    } else {
      state.mixing = false;
      ++state.mixed;
    }
    go_on_if_ready(work.chunk, effects);
  }
}

// A copy: the own parameters change as soon as the first neighbour's are mixed in.
void DPsgdWorker::send_to_neighbours(ChunkId chunk, Iteration iteration, Effects& effects) const {
  for (const NodeId neighbour : neighbours_) {
    send(about(chunk, MessageKind::kShare, neighbour, iteration),
         effects.copy(self(), parameters_of(chunk)), effects);
  }
}

void DPsgdWorker::go_on_if_ready(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.next == 0 || state.mixing) {
    return;
  }
  if (state.mixed < neighbours_.size()) {
    return mix_in_next(chunk, effects);
  }
  state.mixed = 0;
  complete(chunk, std::exchange(state.next, 0), effects);
}

// In a fixed order, so that the result does not depend on who was faster.
void DPsgdWorker::mix_in_next(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  const auto share = std::ranges::find_if(state.inbox, [&](const Received& received) {
    return received.message.from == neighbours_[state.mixed] &&
           received.message.iteration == state.next;
  });
  if (share == state.inbox.end()) {
    return;
  }
  const float part = 1.0F / static_cast<float>(neighbours_.size() + 1);
  Work work = work_on(chunk, WorkKind::kBlend, state.next);
  work.keep = state.mixed == 0 ? part : 1;
  work.add = part;
  work.sources.push_back(share->payload);
  state.inbox.erase(share);
  state.mixing = true;
  effects.start(std::move(work));
}

}  // namespace sluice
