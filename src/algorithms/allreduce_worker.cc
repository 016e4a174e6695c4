#include "algorithms/allreduce_worker.h"

namespace sluice {

AllReduceWorker::AllReduceWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map,
                                 NodeId self)
    : Worker(job, chunk_map, self),
      native_(job.native_allreduce),
      runner_(Collective::kRing, self, job.topology.workers(), chunk_map) {}

BufferRange AllReduceWorker::landing(const Message& message) const {
  return runner_.landing(message);
}

void AllReduceWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (native_) {
    Payload gradient = effects.borrow(self(), {Buffer::kGradients, chunks()[chunk].range});
    Message request = about(chunk, MessageKind::kAllReduce, self(), iteration);
    request.payload_bytes = gradient.size();
    effects.send(request, std::move(gradient));
  } else if (runner_.begin(chunk, iteration, effects)) {
    update(chunk, iteration, effects);
  }
}

void AllReduceWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event);
      received != nullptr && received->message.kind == MessageKind::kAllReduce) {
    return update(received->message.chunk, received->message.iteration, effects);
  }
  if (const auto* finished = std::get_if<Finished>(&event);
      finished != nullptr && finished->kind == WorkKind::kUpdate) {
    return complete(finished->chunk, finished->iteration, effects);
  }
  if (const auto done = runner_.handle(event, effects)) {
    update(done->chunk, done->iteration, effects);
  }
}

void AllReduceWorker::update(ChunkId chunk, Iteration iteration, Effects& effects) {
  Work work;
  work.kind = WorkKind::kUpdate;
  work.priority = chunks()[chunk].priority;
  work.contributors = static_cast<std::uint32_t>(topology().workers());
  work.node = self();
  work.chunk = chunk;
  work.iteration = iteration;
  work.range = chunks()[chunk].range;
  work.sources.push_back(effects.borrow(self(), {Buffer::kGradients, work.range}));
  effects.start(std::move(work));
}

}  // namespace sluice
