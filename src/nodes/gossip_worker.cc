#include "nodes/gossip_worker.h"

#include <utility>

#include "base/random.h"
#include "nodes/random_peer.h"

namespace sluice {

GoSgdWorker::GoSgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                         Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done),
      inbox_(chunks().size()),
      weights_(chunks().size(), 1.0 / static_cast<double>(topology().workers())),
      mixing_(chunks().size(), false) {}

double GoSgdWorker::weight(ChunkId chunk) const {
  double sum = weights_[chunk.index()];
  for (const Received& received : inbox_[chunk.index()]) {
    sum += received.message.weight;
  }
  return sum;
}

void GoSgdWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  update(chunk, iteration, BatchShare{}, effects);  // its own batch is the whole
}

void GoSgdWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const ChunkId chunk = received->message.chunk;
    inbox_[chunk.index()].push_back(*received);
    if (ended() && !mixing_[chunk.index()]) {
      mixing_[chunk.index()] = mix_in_next(chunk, *ended(), effects);
    }
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    on_finished(finished->work.chunk, finished->work.iteration, effects);
  }
}

void GoSgdWorker::on_ended(Iteration iteration, Effects& effects) {
  BasicWorker::on_ended(iteration, effects);
  for (std::size_t c = 0; c < mixing_.size(); ++c) {
    mixing_[c] = mix_in_next(ChunkId(c), iteration, effects);
  }
}

void GoSgdWorker::on_finished(ChunkId chunk, Iteration iteration, Effects& effects) {
  const bool mixes = mix_in_next(chunk, iteration, effects);
  if (ended()) {
    mixing_[chunk.index()] = mixes;
  } else if (!mixes) {
    send_share(chunk, iteration, effects);
    complete(chunk, iteration, effects);
  }
}

bool GoSgdWorker::mix_in_next(ChunkId chunk, Iteration iteration, Effects& effects) {
  auto& inbox = inbox_[chunk.index()];
  if (inbox.empty()) {
    return false;
  }
  const Received next = std::move(inbox.front());
  inbox.erase(inbox.begin());
  mix_in(next, iteration, effects);
  return true;
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

void GoSgdWorker::send_share(ChunkId chunk, Iteration iteration, Effects& effects) {
  Random random(mix(strategy().seed) ^ self().index(), static_cast<std::uint64_t>(iteration));
  if (random.uniform() >= strategy().gossip_probability) {
    return;
  }
  const auto peer = random_peer(living(), strategy().seed, self(), iteration, 0, 1);
  if (!peer) {
    return;
  }
  double& weight = weights_[chunk.index()];
  weight /= 2;
  Message share = about(chunk, MessageKind::kShare, *peer, iteration);
  share.weight = weight;
  send(share, effects.copy(self(), parameters_of(chunk)), effects);
}

}  // namespace sluice
