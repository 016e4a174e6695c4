#include "nodes/gossip_worker.h"

#include "base/check.h"
#include "base/random.h"

namespace sluice {

GossipWorker::GossipWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                           Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done), inbox_(chunks().size()) {}

double GossipWorker::random_number(Iteration iteration) const {
  return Random(mix(strategy().seed) ^ self().index(), static_cast<std::uint64_t>(iteration))
      .uniform();
}

// Among the ranks first, first + step, first + 2 * step ... other than this worker's own.
NodeId GossipWorker::random_peer(Iteration iteration, std::size_t first, std::size_t step) const {
  std::vector<NodeId> peers;
  for (std::size_t rank = first; rank < topology().workers(); rank += step) {
    if (topology().worker(rank) != self()) {
      peers.push_back(topology().worker(rank));
    }
  }
  check(!peers.empty(), "there is a peer to talk to");
  Random random(mix(strategy().seed + 1) ^ self().index(), static_cast<std::uint64_t>(iteration));
  return peers[random.below(peers.size())];
}

void GossipWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  update(chunk, iteration, BatchShare{}, effects);  // its own batch is the whole
}

void GossipWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    inbox_[received->message.chunk.index()].push_back(*received);
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    if (finished->work.kind != WorkKind::kUpdate) {
      on_mixed(*finished, effects);
    }
    mix_or_go_on(finished->work.chunk, finished->work.iteration, effects);
  }
}

void GossipWorker::mix_or_go_on(ChunkId chunk, Iteration iteration, Effects& effects) {
  auto& inbox = inbox_[chunk.index()];
  if (!inbox.empty()) {
    const Received next = std::move(inbox.front());
    inbox.erase(inbox.begin());
    return mix_in(next, iteration, effects);
  }
  speak(chunk, iteration, effects);
  complete(chunk, iteration, effects);
}

// ---- GoSGD --------------------------------------------------------------------------------------

GoSgdWorker::GoSgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                         Completion& done)
    : GossipWorker(job, std::move(chunk_map), self, done),
      weights_(chunks().size(), 1.0 / static_cast<double>(topology().workers())) {}

double GoSgdWorker::weight(ChunkId chunk) const {
  double sum = weights_[chunk.index()];
  for (const Received& received : inbox(chunk)) {
    sum += received.message.weight;
  }
  return sum;
}

void GoSgdWorker::mix_in(const Received& received, Iteration iteration, Effects& effects) {
  const ChunkId chunk = received.message.chunk;
  double& weight = weights_[chunk.index()];
  const double sum = weight + received.message.weight;
  Work work = work_on(chunk, WorkKind::kBlend, iteration);
  work.keep = static_cast<float>(weight / sum);
  work.add = static_cast<float>(received.message.weight / sum);
  work.sources.push_back(received.payload);
  weight = sum;
  effects.start(std::move(work));
}

void GoSgdWorker::on_mixed(const Finished& /*finished*/, Effects& /*effects*/) {}

void GoSgdWorker::speak(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (topology().workers() < 2 || random_number(iteration) >= strategy().gossip_probability) {
    return;
  }
  double& weight = weights_[chunk.index()];
  weight /= 2;
  Message share = about(chunk, MessageKind::kShare, random_peer(iteration, 0, 1), iteration);
  share.weight = weight;
  send(share, effects.copy(self(), parameters_of(chunk)), effects);
}

// ---- AD-PSGD ------------------------------------------------------------------------------------

AdPsgdWorker::AdPsgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                           Completion& done)
    : GossipWorker(job, std::move(chunk_map), self, done),
      active_(self.index() % 2 == 0),
      waiting_(chunks().size(), false) {}

void AdPsgdWorker::mix_in(const Received& received, Iteration iteration, Effects& effects) {
  const Message& message = received.message;
  const bool asked = message.kind == MessageKind::kSwap;
  Work work = work_on(message.chunk, asked ? WorkKind::kSwap : WorkKind::kBlend, iteration);
  work.origin = message.from;
  work.pull = 0.5F;
  work.add = -1;
  work.sources.push_back(received.payload);
  effects.start(std::move(work));
}

void AdPsgdWorker::on_mixed(const Finished& finished, Effects& effects) {
  const Work& work = finished.work;
  if (work.kind == WorkKind::kSwap) {
    send(about(work.chunk, MessageKind::kSwapped, work.origin, work.iteration), finished.output,
         effects);
  } else {
    waiting_[work.chunk.index()] = false;
  }
}

void AdPsgdWorker::speak(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (!active_ || waiting_[chunk.index()] || topology().workers() < 2) {
    return;
  }
  waiting_[chunk.index()] = true;
  send(about(chunk, MessageKind::kSwap, random_peer(iteration, 1, 2), iteration),
       effects.copy(self(), parameters_of(chunk)), effects);
}

}  // namespace sluice
