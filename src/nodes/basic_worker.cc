#include "nodes/basic_worker.h"

#include <utility>

#include "codecs/size.h"
#include "partition/about.h"

namespace sluice {

BasicWorker::BasicWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
                         Completion& done)
    : strategy_(job.strategy), living_(job), chunks_(std::move(chunks)), self_(self), done_(done) {}

BufferRange BasicWorker::landing(const Message& message) const {
  const bool whole = message.kind == MessageKind::kParameters && !strategy_.sparse();
  return whole ? parameters_of(message.chunk) : BufferRange{};
}

void BasicWorker::on_next_iteration(Iteration /*iteration*/, Effects& /*effects*/) {}

void BasicWorker::on_started(Iteration /*iteration*/, Effects& /*effects*/) { ended_.reset(); }

void BasicWorker::on_ended(Iteration iteration, Effects& /*effects*/) { ended_ = iteration; }

void BasicWorker::on_peer_lost(HostId host, Effects& /*effects*/) { living_.lose(host); }

void BasicWorker::update(ChunkId chunk, Iteration iteration, const BatchShare& share,
                         Effects& effects) const {
  update_segment(chunk, 0, (*chunks_)[chunk].range, iteration, share, effects);
}

void BasicWorker::update_segment(ChunkId chunk, std::uint32_t segment, const Range& range,
                                 Iteration iteration, const BatchShare& share,
                                 Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kUpdate, iteration);
  work.segment = segment;
  work.range = range;
  const std::size_t slot = strategy_.gradient_slot(iteration);
  apply(std::move(work), share, effects.borrow(self_, {Buffer::kGradients, range, slot}), effects);
}

void BasicWorker::update_coded(ChunkId chunk, Iteration iteration, const BatchShare& share,
                               Payload gradient, Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kUpdate, iteration);
  work.coded = true;
  apply(std::move(work), share, std::move(gradient), effects);
}

void BasicWorker::apply(Work work, const BatchShare& share, Payload gradient, Effects& effects) {
  work.contributors = share.contributors;
  work.workers = share.workers;
  work.sources.push_back(std::move(gradient));
  effects.start(std::move(work));
}

void BasicWorker::find_norm(Iteration iteration, std::size_t workers, Effects& effects) const {
  Work work = work_on(ChunkId(0), WorkKind::kNorm, iteration);
  work.range = {0, chunks().all().back().range.end};
  work.slot = strategy().gradient_slot(iteration);
  work.workers = static_cast<std::uint32_t>(workers);
  effects.start(std::move(work));
}

void BasicWorker::pack(ChunkId chunk, Iteration iteration, Effects& effects) const {
  Work work = work_on(chunk, WorkKind::kEncode, iteration);
  work.slot = gradient_of(chunk, iteration).slot;
  work.feedback = strategy_.error_feedback;
  work.output_bytes = coded_size(strategy_, work.range.size(), iteration);
  effects.start(std::move(work));
}

void BasicWorker::patch(const Received& changes, Effects& effects) const {
  Work work = work_on(changes.message.chunk, WorkKind::kPatch, changes.message.iteration);
  work.coded = true;
  work.sources.push_back(changes.payload);
  effects.start(std::move(work));
}

Work BasicWorker::work_on(ChunkId chunk, WorkKind kind, Iteration iteration) const {
  return sluice::work_on(*chunks_, chunk, kind, self_, iteration);
}

Message BasicWorker::about(ChunkId chunk, MessageKind kind, NodeId to, Iteration iteration) const {
  return message_about(*chunks_, chunk, kind, self_, to, iteration);
}

void BasicWorker::send(Message message, Payload payload, Effects& effects) const {
  message.payload_bytes = payload.size();
  effects.send(message, std::move(payload));
}

BufferRange BasicWorker::parameters_of(ChunkId chunk) const {
  return {Buffer::kParameters, (*chunks_)[chunk].range};
}

BufferRange BasicWorker::gradient_of(ChunkId chunk, Iteration iteration) const {
  return {Buffer::kGradients, (*chunks_)[chunk].range, strategy_.gradient_slot(iteration)};
}

}  // namespace sluice
