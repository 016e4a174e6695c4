#include "nodes/local_steps_worker.h"

#include <algorithm>
#include <utility>

#include "codecs/size.h"
#include "collectives/choice.h"
#include "nodes/allreduce_worker.h"
#include "nodes/random_pairs.h"
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
      fragments_(fragments_of(*chunk_map, job.strategy.cadence.fragments)),
      states_(chunk_map->size()),
      shares_(chunk_map->size()),
      partners_(chunk_map->size()),
      last_sums_(chunk_map->size()),
      given_up_(chunk_map->size()),
      members_(AggregationGroups(job).size()) {
  if (!in_pairs()) {
    runner_.emplace(job.strategy, collectives_for(job, *chunk_map), self, AggregationGroups(job),
                    chunk_map);
  }
  for (std::size_t c = 0; c < states_.size(); ++c) {
    const Iteration begun = cadence().under_way_at(job.first, fragments_[c]);
    if (std::ranges::find(job.given_up, GivenUpSum{ChunkId(c), begun}) == job.given_up.end()) {
      states_[c] = {.begun = begun, .summed = begun > 0};
      last_sums_[c] = begun;
    }
  }
  if (cadence().synchronous > 0) {
    synchronous_ = make_algorithm<AllReduceWorker>(job, std::move(chunk_map), self, *this);
  }
}

BufferRange LocalStepsWorker::landing(const Message& message) const {
  if (message.kind == MessageKind::kAllReduce) {
    return {Buffer::kGradients, chunks()[message.chunk].range,
            strategy().sum_slot(message.iteration)};
  }
  return runner_ ? runner_->landing(message) : BufferRange{};
}

void LocalStepsWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (iteration <= cadence().synchronous) {
    return synchronous_->exchange(chunk, iteration, effects);
  }
  if (strategy().learners_update) {
    return on_local_step(chunk, iteration, effects);
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
  if (ends(event, WorkKind::kOuterGradient)) {
    const auto& [work, output] = std::get<Finished>(event);
    return begin_exchange(work.chunk, work.iteration, output, effects);
  }
  if (ends(event, WorkKind::kOuterStep) || ends(event, WorkKind::kTakeOver)) {
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
  if (received != nullptr && received->message.kind == MessageKind::kShare) {
    const ChunkId chunk = received->message.chunk;
    shares_[chunk.index()].push_back({received->message.iteration, received->payload});
    return on_share(chunk, effects);
  }
  if (!exchanges_) {  // it is about a sum that was given up
    return;
  }
  if (const auto done = runner_->handle(event, effects)) {
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
  if (work.fresh) {
    complete(chunk, work.iteration, effects);
  } else if (work.kind == WorkKind::kOuterStep) {
    start(chunk, WorkKind::kTakeOver, state.waits, effects);
  } else {
    partners_[chunk.index()] = {};
    const Iteration waited = std::exchange(state, {}).waits;
    complete(chunk, waited, effects);
  }
}

void LocalStepsWorker::on_local_step(ChunkId chunk, Iteration iteration, Effects& effects) {
  State& state = states_[chunk.index()];
  if (state.begun > 0 && iteration == state.begun + cadence().delay) {
    state.waits = iteration;
    step_if_due(chunk, effects);
  } else if (exchanges_ && cadence().begins_at(iteration, fragments_[chunk.index()])) {
    start(chunk, WorkKind::kOuterGradient, iteration, effects);
  } else {
    complete(chunk, iteration, effects);
  }
}

void LocalStepsWorker::begin_exchange(ChunkId chunk, Iteration iteration, Payload share,
                                      Effects& effects) {
  if (!exchanges_) {
    return complete(chunk, iteration, effects);
  }
  states_[chunk.index()] = {.begun = iteration, .waits = cadence().delay == 0 ? iteration : 0};
  if (in_pairs()) {
    send_share(chunk, iteration, std::move(share), effects);
  } else {
    begin_sum(chunk, iteration, effects);
  }
  if (cadence().delay > 0) {
    complete(chunk, iteration, effects);
  }
}

void LocalStepsWorker::send_share(ChunkId chunk, Iteration iteration, Payload share,
                                  Effects& effects) {
  const auto partner = partner_of(topology(), strategy().seed, self(), iteration);
  if (partner) {
    send(about(chunk, MessageKind::kShare, *partner, iteration), std::move(share), effects);
    on_share(chunk, effects);
  }
  if (!partner || !living().has(*partner)) {
    step_alone(chunk, effects);
  }
}

void LocalStepsWorker::step_alone(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  if (!state.summed) {
    state.summed = true;
    step_if_due(chunk, effects);
  }
}

void LocalStepsWorker::on_peer_lost(HostId host, Effects& effects) {
  BasicWorker::on_peer_lost(host, effects);
  if (in_pairs()) {
    lose_partner(host, effects);
  } else {
    give_up_sums(effects);
  }
}

// What others have sent may still land where sums are made, and what was lent is still read: the
// worker computes elsewhere, and begins no exchange there.
void LocalStepsWorker::give_up_sums(Effects& effects) {
  exchanges_ = false;
  for (std::size_t c = 0; c < states_.size(); ++c) {
    if (states_[c].begun == 0 || states_[c].summed) {
      continue;
    }
    const State was = std::exchange(states_[c], {});
    given_up_[c] = was.begun;
    if (was.waits > 0) {
      complete(ChunkId(c), was.waits, effects);
    }
  }
}

// All know the same pairs, whoever is lost: nobody waits for one who has another partner.
void LocalStepsWorker::lose_partner(HostId host, Effects& effects) {
  for (std::size_t c = 0; c < states_.size(); ++c) {
    const Iteration begun = states_[c].begun;
    if (begun == 0) {
      continue;
    }
    const auto partner = partner_of(topology(), strategy().seed, self(), begun);
    if (partner && topology().host_of(*partner) == host) {
      step_alone(ChunkId(c), effects);
    }
  }
}

// It sends again what its predecessor may have sent for iterations to come.
void LocalStepsWorker::on_peer_joined(HostId host) {
  BasicWorker::on_peer_joined(host);
  for (std::vector<Share>& shares : shares_) {
    std::erase_if(shares, [&](const Share& share) {
      const auto partner = partner_of(topology(), strategy().seed, self(), share.iteration);
      return partner && topology().host_of(*partner) == host;
    });
  }
}

void LocalStepsWorker::on_share(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  std::vector<Share>& shares = shares_[chunk.index()];
  const auto awaited = std::ranges::find(shares, state.begun, &Share::iteration);
  if (state.begun == 0 || awaited == shares.end()) {
    return;
  }
  partners_[chunk.index()] = std::move(awaited->payload);
  state.summed = true;
  shares.erase(awaited);
  step_if_due(chunk, effects);
}

void LocalStepsWorker::begin_sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (strategy().driver_sums()) {
    Message message = about(chunk, MessageKind::kAllReduce, self(), iteration);
    message.payload_bytes = coded_size(strategy(), chunks()[chunk].range.size(), iteration);
    effects.send(message, effects.borrow(self(), landing(message)));
  } else {
    const std::size_t at_once = runner_->begin(chunk, iteration, effects).size();
    for (std::size_t part = 0; part < at_once; ++part) {
      on_part(chunk, effects);
    }
  }
}

void LocalStepsWorker::on_part(ChunkId chunk, Effects& effects) {
  State& state = states_[chunk.index()];
  const std::size_t parts = strategy().driver_sums() ? 1 : runner_->segments_of(chunk);
  state.summed = ++state.parts == parts;
  if (state.summed) {
    last_sums_[chunk.index()] = state.begun;
  }
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
  work.workers = static_cast<std::uint32_t>(members_);
  if (in_pairs() && kind == WorkKind::kOuterGradient) {
    work.output_bytes = 2 * work.range.size() * kFloatBytes;
  }
  if (kind == WorkKind::kOuterStep && partners_[chunk.index()].size() > 0) {
    work.sources.push_back(partners_[chunk.index()]);
  }
  effects.start(std::move(work));
}

}  // namespace sluice
