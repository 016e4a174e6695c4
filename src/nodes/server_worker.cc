#include "nodes/server_worker.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

// Chunks count towards the first of their layers, so that each counts once.
LayerId head_of(const ChunkMap& chunks, ChunkId chunk) { return chunks.layers_of(chunk).front(); }

Countdown notices_per_layer(const ChunkMap& chunks) {
  std::vector<std::uint32_t> needed(chunks.layers(), 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    ++needed[head_of(chunks, ChunkId(c)).index()];
  }
  return Countdown(needed);
}

}  // namespace

ServerWorker::ServerWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map, NodeId self,
                           Completion& done)
    : BasicWorker(job, std::move(chunk_map), self, done),
      notices_missing_(notices_per_layer(chunks())),
      sums_missing_(std::array{static_cast<std::uint32_t>(chunks().size())}) {}

// The server has used the gradient by the time the sum comes, which takes its place: at once, or
// unpacked.
BufferRange ServerWorker::landing(const Message& message) const {
  if (message.kind != MessageKind::kParameters || !strategy().servers_sum()) {
    return BasicWorker::landing(message);
  }
  return strategy().servers_pack() ? BufferRange{} : gradient_of(message.chunk, message.iteration);
}

void ServerWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (strategy().coded()) {
    return pack(chunk, iteration, effects);
  }
  push(chunk, iteration, effects.borrow(self(), gradient_of(chunk, iteration)), effects);
}

void ServerWorker::push(ChunkId chunk, Iteration iteration, Payload gradient,
                        Effects& effects) const {
  send(about(chunk, MessageKind::kPush, server_of(chunk), iteration), std::move(gradient), effects);
}

void ServerWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    return on_received(*received, effects);
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    if (work.kind == WorkKind::kEncode) {
      push(work.chunk, work.iteration, finished->output, effects);
    } else if (work.kind == WorkKind::kDecode) {
      on_sum(work.chunk, work.iteration, effects);
    } else if (work.kind == WorkKind::kNorm) {
      for (std::size_t c = 0; c < chunks().size(); ++c) {
        update_with_sum(ChunkId(c), work.iteration, effects);
      }
    } else {
      complete(work.chunk, work.iteration, effects);
    }
  }
}

void ServerWorker::on_received(const Received& event, Effects& effects) {
  const Message& message = event.message;
  switch (message.kind) {
    case MessageKind::kParameters:
      if (strategy().sparse()) {
        return patch(event, effects);
      }
      if (strategy().servers_pack()) {
        return unpack(event, effects);
      }
      if (strategy().servers_sum()) {
        return on_sum(message.chunk, message.iteration, effects);
      }
      return complete(message.chunk, message.iteration, effects);
    case MessageKind::kNotify:
      return on_notice(message, effects);
    default:
      fail_check("a worker understands parameters and notices");
  }
}

void ServerWorker::unpack(const Received& sum, Effects& effects) const {
  const Message& message = sum.message;
  Work work = work_on(message.chunk, WorkKind::kDecode, message.iteration);
  work.coded = true;
  work.slot = gradient_of(message.chunk, message.iteration).slot;
  work.sources.push_back(sum.payload);
  effects.start(std::move(work));
}

void ServerWorker::on_sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (strategy().learners_update) {
    return complete(chunk, iteration, effects);
  }
  if (strategy().sums_first != SumsFirst::kModel) {
    update_with_sum(chunk, iteration, effects);
  } else if (sums_missing_.arrive(0)) {
    find_norm(iteration, topology().workers(), effects);
  }
}

void ServerWorker::update_with_sum(ChunkId chunk, Iteration iteration, Effects& effects) const {
  update(chunk, iteration, BatchShare::all(topology().workers()), effects);
}

void ServerWorker::on_next_iteration(Iteration iteration, Effects& effects) {
  if (strategy().exchange == Exchange::kLatePull) {
    for (std::size_t c = 0; c < chunks().size(); ++c) {
      pull(ChunkId(c), iteration, effects);
    }
  }
}

// As MXNet's KVStore does, a layer is pulled when all its parts have been announced.
void ServerWorker::on_notice(const Message& notice, Effects& effects) {
  const LayerId layer = head_of(chunks(), notice.chunk);
  if (!notices_missing_.arrive(layer.index())) {
    return;
  }
  for (const ChunkId chunk : chunks().chunks_of(layer)) {
    if (head_of(chunks(), chunk) == layer) {
      pull(chunk, notice.iteration, effects);
    }
  }
}

void ServerWorker::pull(ChunkId chunk, Iteration iteration, Effects& effects) const {
  send(about(chunk, MessageKind::kPull, server_of(chunk), iteration), {}, effects);
}

}  // namespace sluice
