#include "nodes/local_steps_worker.h"

#include <utility>

#include "codecs/size.h"
#include "collectives/choice.h"
#include "nodes/allreduce_worker.h"
#include "partition/fragments.h"

namespace sluice {
namespace {

Iteration iteration_of(const Event& event) {
  if (const auto* received = std::get_if<Received>(&event)) {
    return received->message.iteration;
  }
  if (const auto* returned = std::get_if<Returned>(&event)) {
    return returned->message.iteration;
  }
  return std::get<Finished>(event).work.iteration;
}

bool ends(const Event& event, WorkKind kind) {
  const auto* finished = std::get_if<Finished>(&event);
  return finished != nullptr && finished->work.kind == kind;
}

}  // namespace

LocalStepsWorker::LocalStepsWorker(const Job& job, std::shared_ptr<const ChunkMap> chunk_map,
                                   NodeId self, Completion& done)
    : BasicWorker(job, chunk_map, self, done),
      runner_(job.strategy, collectives_for(job, *chunk_map), self, AggregationGroups(job),
              chunk_map),
      fragments_(fragments_of(*chunk_map, job.strategy.cadence.fragments)),
      states_(chunk_map->size()) {
  if (cadence().synchronous > 0) {
    synchronous_ = make_algorithm<AllReduceWorker>(job, std::move(chunk_map), self, *this);
  }
}

BufferRange LocalStepsWorker::landing(const Message& message) const {
  if (message.kind == MessageKind::kAllReduce) {
    return {Buffer::kGradients, chunks()[message.chunk].range,
            strategy().sum_slot(message.iteration)};
  }
  return runner_.landing(message);
}

void LocalStepsWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (iteration <= cadence().synchronous) {
    return synchronous_->exchange(chunk, iteration, effects);
  }
  if (strategy().sums_first != SumsFirst::kModel) {
    return take_local_step(chunk, iteration, effects);
  }
  if (++final_ == chunks().size()) {
    final_ = 0;
    find_norm(iteration, 1, effects);
  }
}

void LocalStepsWorker::take_local_step(ChunkId chunk, Iteration iteration, Effects& effects) const {
  update(chunk, iteration, BatchShare{}, effects);
}

void LocalStepsWorker::on_norm(Iteration iteration, Effects& effects) const {
  for (std::size_t c = 0; c < chunks().size(); ++c) {
    take_local_step(ChunkId(c), iteration, effects);
  }
}

void LocalStepsWorker::on_network(const Event& event, Effects& effects) {
  // Neither sums nor synchronous iterations have such work.
  if (ends(event, WorkKind::kOuterGradient) || ends(event, WorkKind::kOuterStep) ||
      ends(event, WorkKind::kTakeOver)) {
    return on_finished(std::get<Finished>(event).work, effects);
  }
  if (iteration_of(event) <= cadence().synchronous) {
    return synchronous_->on_network(event, effects);
  }
  if (ends(event, WorkKind::kUpdate)) {
    const Work& work = std::get<Finished>(event).work;
    return on_local_step(work.chunk, work.iteration, effects);
  }
  if (ends(event, WorkKind::kNorm)) {
    return on_norm(std::get<Finished>(event).work.iteration, effects);
  }
  const auto* received = std::get_if<Received>(&event);
  if (received != nullptr && received->message.kind == MessageKind::kAllReduce) {
    return on_part(received->message.chunk, effects);
  }
  if (const auto done = runner_.handle(event, effects)) {
    on_part(done->chunk, effects);
  }
}

void LocalStepsWorker::on_complete(ChunkId chunk, Iteration iteration, Effects& effects) {
  Work work = work_on(chunk, WorkKind::kOuterStep, iteration);
  work.fresh = true;
  effects.start(std::move(work));
}

void LocalStepsWorker::on_finished(const Work& work, Effects& effects) {
  const ChunkId chunk = work.chunk;
  State& state = states_[chunk.index()];
  if (work.kind == WorkKind::kOuterGradient) {
    begin_sum(chunk, work.iteration, effects);
  } else if (work.fresh) {
    complete(chunk, work.iteration, effects);
  } else if (work.kind == WorkKind::kOuterStep) {
    start(chunk, WorkKind::kTakeOver, state.waits, effects);
  } else {
    const Iteration waited = std::exchange(state, {}).waits;
    complete(chunk, waited, effects);
  }
}

void LocalStepsWorker::on_local_step(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.begun > 0 && iteration == state.begun + cadence().delay) {
    state.waits = iteration;
    step_if_due(chunk, effects);
  } else if (cadence().begins_at(iteration, fragments_[chunk.index()])) {
    start(chunk, WorkKind::kOuterGradient, iteration, effects);
  } else {
    complete(chunk, iteration, effects);
  }
}

void LocalStepsWorker::begin_sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  state = {.begun = iteration, .waits = cadence().delay == 0 ? iteration : 0};
  if (strategy().driver_sums()) {
    Message message = about(chunk, MessageKind::kAllReduce, self(), iteration);
    message.payload_bytes = coded_size(strategy(), chunks()[chunk].range.size(), iteration);
    effects.send(message, effects.borrow(self(), landing(message)));
  } else {
    const std::size_t at_once = runner_.begin(chunk, iteration, effects).size();
    for (std::size_t part = 0; part < at_once; ++part) {
      on_part(chunk, effects);
    }
  }
  if (cadence().delay > 0) {
    complete(chunk, iteration, effects);
  }
}

void LocalStepsWorker::on_part(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  const std::size_t parts = strategy().driver_sums() ? 1 : runner_.segments_of(chunk);
  state.summed = ++state.parts == parts;
  step_if_due(chunk, effects);
}

void LocalStepsWorker::step_if_due(ChunkId chunk, Effects& effects) {
  const State& state = states_[chunk.index()];
  if (state.summed && state.waits > 0) {
    start(chunk, WorkKind::kOuterStep, state.begun, effects);
  }
}

void LocalStepsWorker::start(ChunkId chunk, WorkKind kind, Iteration iteration,
                             Effects& effects) const {
  Work work = work_on(chunk, kind, iteration);
  work.slot = strategy().sum_slot(iteration);
  work.keep = static_cast<float>(cadence().mix);
  work.workers = static_cast<std::uint32_t>(topology().workers());
  effects.start(std::move(work));
}

}  // namespace sluice
