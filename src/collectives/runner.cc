#include "collectives/runner.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "codecs/size.h"
#include "collectives/segments.h"
#include "partition/about.h"

namespace sluice {
namespace {

bool overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

// Adding to a range that is being sent in the same round would change it while the peer reads.
bool adds_to_what_it_sends(const Round& round) {
  return round.receive.has_value() && overlap(round.send->range, round.receive->range);
}

bool sends_the_same(const Round& a, const Round& b) {
  return a.send.has_value() && b.send.has_value() && a.send->range == b.send->range;
}

// Error feedback may apply only when this rank sends a range for the first time. A second
// correction, or one that another rank makes too, would count twice.
bool sends_first(const Plan& plan, std::size_t round) {
  return std::none_of(
      plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(round), [&](const Round& earlier) {
        return earlier.send && overlap(earlier.send->range, plan[round].send->range);
      });
}

}  // namespace

CollectiveRunner::CollectiveRunner(const Strategy& strategy, std::vector<Collective> collectives,
                                   NodeId self, const AggregationGroups& groups,
                                   std::shared_ptr<const ChunkMap> chunks)
    : strategy_(strategy.of_sums()),
      collectives_(std::move(collectives)),
      self_(self),
      groups_(groups),
      chunks_(std::move(chunks)) {
  std::size_t runs = 0;
  for (std::size_t c = 0; c < chunks_->size(); ++c) {
    first_run_.push_back(runs);
    runs += segments_of(ChunkId(c)) * strategy_.gradient_slots();
  }
  runs_.resize(runs);
}

std::size_t CollectiveRunner::segments_of(ChunkId chunk) const {
  return sluice::segments_of(strategy_, collectives_[chunk.index()], groups_.size(),
                             (*chunks_)[chunk].range.size());
}

Range CollectiveRunner::range_of(ChunkId chunk, std::size_t segment) const {
  return range_of_segment((*chunks_)[chunk].range, segments_of(chunk), segment);
}

Plan CollectiveRunner::plan_of(ChunkId chunk, std::size_t segment) const {
  return make_plan(collectives_[chunk.index()], groups_.index_of(self_), groups_.size(),
                   range_of(chunk, segment));
}

std::size_t CollectiveRunner::index_of(ChunkId chunk, Iteration iteration,
                                       std::size_t segment) const {
  const std::size_t segments = segments_of(chunk);
  check(segment < segments, "a segment belongs to its chunk");
  return first_run_[chunk.index()] + strategy_.gradient_slot(iteration) * segments + segment;
}

std::vector<CollectiveRunner::Done> CollectiveRunner::begin(ChunkId chunk, Iteration iteration,
                                                            Effects& effects) {
  const std::size_t segments = segments_of(chunk);
  std::vector<Done> done;
  for (std::size_t s = 0; s < segments; ++s) {
    Run& run = run_of(chunk, iteration, s);
    check(run.state == State::kIdle, "a slot's sum is done before its next begins");
    run.chunk = chunk;
    run.segment = static_cast<std::uint32_t>(s);
    run.iteration = iteration;
    if (run.plan.empty()) {
      run.plan = plan_of(chunk, s);
    }
    run.round = 0;
    run.state = State::kEntering;
    run.awaited.clear();
    run.packed = {};
    run.packed_range = {};
    if (strategy_.travels_whole()) {
      pack(run, 0, range_of(chunk, s), effects);
    }
    if (auto segment = advance(run, effects)) {
      done.push_back(std::move(*segment));
    }
  }
  return done;
}

std::optional<CollectiveRunner::Done> CollectiveRunner::handle(const Event& event,
                                                               Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const Message& message = received->message;
    Run& run = run_of(message.chunk, message.iteration, message.segment);
    on_received(*received, run);
    return advance(run, effects);
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    Run& run = run_of(work.chunk, work.iteration, work.segment);
    on_finished(*finished, run, effects);
    return advance(run, effects);
  }
  if (const auto* returned = std::get_if<Returned>(&event)) {
    const Message& message = returned->message;
    Run& run = run_of(message.chunk, message.iteration, message.segment);
    --run.lent;
    return advance(run, effects);
  }
  return std::nullopt;
}

BufferRange CollectiveRunner::landing(const Message& message) const {
  if (message.kind != MessageKind::kGather || strategy_.coded()) {
    return {};
  }
  const Plan& made = runs_[index_of(message.chunk, message.iteration, message.segment)].plan;
  const auto range_in = [&](const Plan& plan) {
    check(message.round < plan.size() && plan[message.round].receive.has_value(),
          "a gathered part belongs to a round of the plan");
    return plan[message.round].receive->range;
  };
  return {Buffer::kGradients,
          made.empty() ? range_in(plan_of(message.chunk, message.segment)) : range_in(made),
          strategy_.sum_slot(message.iteration)};
}

std::optional<CollectiveRunner::Done> CollectiveRunner::advance(Run& run, Effects& effects) {
  while (run.state != State::kIdle && run.round < run.plan.size()) {
    if (!advance_step(run, effects)) {
      return std::nullopt;
    }
    run.round = end_of_step(run.plan, run.round);
    run.state = State::kEntering;
  }
  if (run.state != State::kEntering || run.lent > 0) {
    return std::nullopt;
  }
  if (strategy_.gathered() && run.packed.size() > 0) {
    unpack(run, effects);
    return std::nullopt;
  }
  run.state = State::kIdle;
  Done done{run.chunk, run.segment, run.iteration, {}};
  if (strategy_.sparse()) {
    done.sum = std::move(run.packed);
  }
  return done;
}

// True when the step is complete.
bool CollectiveRunner::advance_step(Run& run, Effects& effects) {
  if (run.state == State::kEntering) {
    enter(run, effects);
  }
  if (run.state != State::kReceiving) {
    return false;
  }
  if (!run.plan[run.round].reduce) {
    copy(run, effects);
  } else if (strategy_.travels_whole()) {
    merge(run, effects);
  } else {
    add(run, effects);
  }
  return run.taken == run.awaited.size() && run.working == 0;
}

void CollectiveRunner::on_received(const Received& event, Run& run) {
  const Message& message = event.message;
  Arrival arrival{message.round, message.iteration, event.payload};
  const bool in_step = run.state == State::kPacking || run.state == State::kReceiving;
  if (!in_step || !accept(run, arrival)) {
    run.early.push_back(std::move(arrival));
  }
}

// True if the current step awaits it.
bool CollectiveRunner::accept(Run& run, Arrival& arrival) {
  if (arrival.iteration != run.iteration || arrival.round >= run.plan.size() ||
      !run.plan[arrival.round].receive.has_value()) {
    return false;
  }
  const std::size_t peer = run.plan[arrival.round].receive->peer;
  const auto awaited = std::ranges::lower_bound(run.awaited, peer, {}, &Awaited::peer);
  if (awaited == run.awaited.end() || awaited->round != arrival.round) {
    return false;
  }
  awaited->here = true;
  awaited->payload = std::move(arrival.payload);
  run.arrived.push_back(static_cast<std::size_t>(awaited - run.awaited.begin()));
  return true;
}

// Sends the messages of the step, or starts packing them.
void CollectiveRunner::enter(Run& run, Effects& effects) {
  run.state = State::kReceiving;
  expect(run);
  const std::size_t end = end_of_step(run.plan, run.round);
  for (std::size_t round = run.round; round < end; ++round) {
    send_or_pack(run, round, effects);
  }
}

// Lists what the step receives, including what is here already.
void CollectiveRunner::expect(Run& run) {
  run.awaited.clear();
  run.arrived.clear();
  run.taken = 0;
  const std::size_t end = end_of_step(run.plan, run.round);
  for (std::size_t round = run.round; round < end; ++round) {
    if (const auto& receive = run.plan[round].receive) {
      run.awaited.push_back({.peer = receive->peer, .round = round});
    }
  }
  std::ranges::sort(run.awaited, {}, &Awaited::peer);
  for (Arrival& arrival : std::exchange(run.early, {})) {
    if (!accept(run, arrival)) {
      run.early.push_back(std::move(arrival));
    }
  }
}

void CollectiveRunner::send_or_pack(Run& run, std::size_t index, Effects& effects) {
  const Round& round = run.plan[index];
  if (!round.send.has_value()) {
    if (round.shared.has_value() && strategy_.coded() && !strategy_.travels_whole()) {
      pack(run, index, *round.shared, effects);
    }
    return;
  }
  const Range range = round.send->range;
  if (!strategy_.coded()) {
    const BufferRange what{Buffer::kGradients, range, strategy_.sum_slot(run.iteration)};
    const bool copied = adds_to_what_it_sends(round);
    send(run, index, copied ? effects.copy(self_, what) : effects.borrow(self_, what), !copied,
         effects);
  } else if (strategy_.travels_whole() || (!round.reduce && run.packed_range == range)) {
    send(run, index, run.packed, false, effects);
  } else if (!round.together || !sends_the_same(run.plan[index - 1], round)) {
    pack(run, index, range, effects);
  }
}

// Adds what has arrived without a gap in the order of ranks, in which this rank has its place, too.
void CollectiveRunner::add(Run& run, Effects& effects) {
  const auto first = run.awaited.begin() + static_cast<std::ptrdiff_t>(run.taken);
  const auto gap = std::find_if_not(first, run.awaited.end(), std::mem_fn(&Awaited::here));
  const auto own = std::ranges::lower_bound(first, run.awaited.end(), groups_.index_of(self_), {},
                                            &Awaited::peer);
  if (run.working > 0 || gap == first || gap < own) {
    return;
  }
  run.packed_range = {};
  Work work = work_on(run, first->round, WorkKind::kReduce, run.plan[first->round].receive->range);
  work.before = static_cast<std::uint32_t>(own - first);
  for (auto source = first; source != gap; ++source) {
    work.sources.push_back(std::move(source->payload));
  }
  run.taken += work.sources.size();
  ++run.working;
  effects.start(std::move(work));
}

// What travels whole receives one message per step. Gathered codes have the same order everywhere.
void CollectiveRunner::merge(Run& run, Effects& effects) {
  if (run.taken == run.awaited.size() || !run.awaited.front().here) {
    return;
  }
  Awaited& source = run.awaited.front();
  const Range range = run.plan[source.round].receive->range;
  Work work = work_on(run, source.round, WorkKind::kMerge, range);
  work.output_bytes =
      merged_size(strategy_, run.packed.size() + source.payload.size(), range.size());
  work.sources = {std::exchange(run.packed, {}), std::exchange(source.payload, {})};
  if (source.peer < groups_.index_of(self_)) {
    std::ranges::reverse(work.sources);
  }
  ++run.taken;
  ++run.working;
  effects.start(std::move(work));
}

// Without a codec, what arrives is already in its place.
void CollectiveRunner::copy(Run& run, Effects& effects) {
  for (const std::size_t index : std::exchange(run.arrived, {})) {
    Awaited& source = run.awaited[index];
    ++run.taken;
    Payload arrived = std::move(source.payload);
    if (!strategy_.coded()) {
      continue;
    }
    const Range range = run.plan[source.round].receive->range;
    run.packed = arrived;
    run.packed_range = range;
    if (strategy_.travels_whole()) {
      continue;
    }
    Work work = work_on(run, source.round, WorkKind::kDecode, range);
    work.sources.push_back(std::move(arrived));
    ++run.working;
    effects.start(std::move(work));
  }
}

void CollectiveRunner::on_finished(const Finished& event, Run& run, Effects& effects) {
  --run.working;
  if (event.work.kind == WorkKind::kMerge) {
    run.packed = event.output;
  }
  if (event.work.kind == WorkKind::kDecode && strategy_.gathered()) {
    run.state = State::kEntering;
  }
  if (event.work.kind != WorkKind::kEncode) {
    return;
  }
  run.packed = event.output;
  run.packed_range = event.work.range;
  if (strategy_.travels_whole()) {
    run.state = State::kEntering;
    return;
  }
  if (run.working == 0) {
    run.state = State::kReceiving;
  }
  std::size_t round = event.work.round;
  if (!run.plan[round].send.has_value()) {
    return;
  }
  do {
    send(run, round, event.output, false, effects);
    ++round;
  } while (round < run.plan.size() && run.plan[round].together &&
           sends_the_same(run.plan[round - 1], run.plan[round]));
}

void CollectiveRunner::send(Run& run, std::size_t index, Payload payload, bool lent,
                            Effects& effects) const {
  const Round& round = run.plan[index];
  Message message =
      message_about(*chunks_, run.chunk, round.reduce ? MessageKind::kReduce : MessageKind::kGather,
                    self_, groups_.leader(round.send->peer), run.iteration);
  message.wants_return = lent;
  message.round = static_cast<std::uint16_t>(index);
  message.segment = run.segment;
  message.payload_bytes = payload.size();
  run.lent += lent ? 1 : 0;
  effects.send(message, std::move(payload));
}

Work CollectiveRunner::work_on(const Run& run, std::size_t round, WorkKind kind,
                               const Range& range) const {
  Work work = sluice::work_on(*chunks_, run.chunk, kind, self_, run.iteration);
  work.round = static_cast<std::uint16_t>(round);
  work.coded = strategy_.coded();
  work.segment = run.segment;
  work.range = range;
  work.slot = strategy_.sum_slot(run.iteration);
  return work;
}

void CollectiveRunner::pack(Run& run, std::size_t index, const Range& range,
                            Effects& effects) const {
  Work work = work_on(run, index, WorkKind::kEncode, range);
  work.output_bytes = coded_size(strategy_, range.size(), run.iteration);
  if (strategy_.gathered()) {
    work.feedback = strategy_.error_feedback;
  } else if (!strategy_.sparse()) {
    const Round& round = run.plan[index];
    work.exact = !round.reduce || adds_to_what_it_sends(round);
    work.feedback =
        strategy_.error_feedback && round.send.has_value() && sends_first(run.plan, index);
  }
  run.state = State::kPacking;
  ++run.working;
  effects.start(std::move(work));
}

// The codes of all ranks are here.
void CollectiveRunner::unpack(Run& run, Effects& effects) const {
  Work work = work_on(run, 0, WorkKind::kDecode, range_of(run.chunk, run.segment));
  work.sources.push_back(std::exchange(run.packed, {}));
  run.state = State::kPacking;
  ++run.working;
  effects.start(std::move(work));
}

}  // namespace sluice
