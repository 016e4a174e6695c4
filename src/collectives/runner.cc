#include "collectives/runner.h"

#include <algorithm>

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
    : strategy_(strategy),
      collectives_(std::move(collectives)),
      self_(self),
      groups_(groups),
      chunks_(std::move(chunks)),
      open_(chunks_->size() * strategy.gradient_slots()) {
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

CollectiveRunner::Run& CollectiveRunner::run_of(ChunkId chunk, Iteration iteration,
                                                std::size_t segment) {
  const std::size_t segments = segments_of(chunk);
  check(segment < segments, "a segment belongs to its chunk");
  return runs_[first_run_[chunk.index()] + strategy_.gradient_slot(iteration) * segments + segment];
}

std::optional<CollectiveRunner::Done> CollectiveRunner::begin(ChunkId chunk, Iteration iteration,
                                                              Effects& effects) {
  const std::size_t segments = segments_of(chunk);
  open_[chunk.index() * strategy_.gradient_slots() + strategy_.gradient_slot(iteration)] = segments;
  std::optional<Done> done;
  for (std::size_t s = 0; s < segments; ++s) {
    Run& run = run_of(chunk, iteration, s);
    check(run.step == Step::kIdle, "a slot's sum is done before its next begins");
    run.chunk = chunk;
    run.segment = static_cast<std::uint32_t>(s);
    run.iteration = iteration;
    run.plan = make_plan(collectives_[chunk.index()], groups_.index_of(self_), groups_.size(),
                         range_of(chunk, s));
    run.round = 0;
    run.step = Step::kEntering;
    run.packed = {};
    run.packed_range = {};
    if (strategy_.sparse()) {
      pack(run, range_of(chunk, s), effects);
    }
    done = advance(run, effects);
  }
  return done;
}

std::optional<CollectiveRunner::Done> CollectiveRunner::handle(const Event& event,
                                                               Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const Message& message = received->message;
    Run& run = run_of(message.chunk, message.iteration, message.segment);
    run.arrivals.push_back({message.round, message.iteration, received->payload});
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
  const Plan plan = make_plan(collectives_[message.chunk.index()], groups_.index_of(self_),
                              groups_.size(), range_of(message.chunk, message.segment));
  check(message.round < plan.size() && plan[message.round].receive.has_value(),
        "a gathered part belongs to a round of the plan");
  return {Buffer::kGradients, plan[message.round].receive->range,
          strategy_.gradient_slot(message.iteration)};
}

std::optional<CollectiveRunner::Done> CollectiveRunner::advance(Run& run, Effects& effects) {
  while (run.step != Step::kIdle && run.round < run.plan.size()) {
    if (!advance_round(run, effects)) {
      return std::nullopt;
    }
    ++run.round;
    run.step = Step::kEntering;
  }
  if (run.step != Step::kEntering || run.lent > 0) {
    return std::nullopt;
  }
  run.step = Step::kIdle;
  auto& open = open_[run.chunk.index() * strategy_.gradient_slots() +
                     strategy_.gradient_slot(run.iteration)];
  if (--open > 0) {
    return std::nullopt;
  }
  Done done{run.chunk, run.iteration, {}};
  if (strategy_.sparse()) {
    done.sum = std::move(run.packed);
  }
  return done;
}

// True when the round is complete.
bool CollectiveRunner::advance_round(Run& run, Effects& effects) {
  if (run.step == Step::kEntering) {
    enter(run, effects);
  }
  if (run.step != Step::kReceiving) {
    return false;
  }
  if (!run.plan[run.round].receive.has_value()) {
    return true;
  }
  const auto arrival = std::find_if(
      run.arrivals.begin(), run.arrivals.end(),
      [&](const Arrival& a) { return a.round == run.round && a.iteration == run.iteration; });
  if (arrival == run.arrivals.end()) {
    return false;
  }
  Payload payload = std::move(arrival->payload);
  run.arrivals.erase(arrival);
  take(run, std::move(payload), effects);
  return run.step == Step::kReceiving;
}

// Sends this round's message, or starts packing it.
void CollectiveRunner::enter(Run& run, Effects& effects) {
  const Round& round = run.plan[run.round];
  run.step = Step::kReceiving;
  if (!round.send.has_value()) {
    if (round.shared.has_value() && strategy_.coded() && !strategy_.sparse()) {
      pack(run, *round.shared, effects);
    }
    return;
  }
  const Range range = round.send->range;
  if (!strategy_.coded()) {
    const BufferRange what{Buffer::kGradients, range, strategy_.gradient_slot(run.iteration)};
    const bool copied = adds_to_what_it_sends(round);
    send(run, copied ? effects.copy(self_, what) : effects.borrow(self_, what), !copied, effects);
  } else if (strategy_.sparse() || (!round.reduce && run.packed_range == range)) {
    send(run, run.packed, false, effects);
  } else {
    pack(run, range, effects);
  }
}

// Adds or copies what has arrived. Without a codec, a copy is already in its place.
void CollectiveRunner::take(Run& run, Payload arrived, Effects& effects) {
  const Round& round = run.plan[run.round];
  const Range range = round.receive->range;
  if (!round.reduce && !strategy_.coded()) {
    return;
  }
  const bool merges = strategy_.sparse();
  if (round.reduce && !merges) {
    run.packed_range = {};
  } else if (!round.reduce) {
    run.packed = arrived;
    run.packed_range = range;
    if (merges) {
      return;
    }
  }
  const WorkKind adding = merges ? WorkKind::kMerge : WorkKind::kReduce;
  Work work = work_on(run, round.reduce ? adding : WorkKind::kDecode, range);
  if (merges) {
    work.output_bytes = merged_size(run.packed.size() + arrived.size(), range.size());
    work.sources.push_back(std::move(run.packed));
  }
  work.sources.push_back(std::move(arrived));
  run.step = Step::kTaking;
  effects.start(std::move(work));
}

void CollectiveRunner::on_finished(const Finished& event, Run& run, Effects& effects) {
  switch (event.work.kind) {
    case WorkKind::kEncode:
      run.packed = event.output;
      run.packed_range = event.work.range;
      if (strategy_.sparse()) {
        run.step = Step::kEntering;
      } else {
        run.step = Step::kReceiving;
        if (run.plan[run.round].send.has_value()) {
          send(run, event.output, false, effects);
        }
      }
      return;
    case WorkKind::kMerge:
      run.packed = event.output;
      break;
    default:
      break;
  }
  ++run.round;
  run.step = Step::kEntering;
}

void CollectiveRunner::send(Run& run, Payload payload, bool lent, Effects& effects) const {
  const Round& round = run.plan[run.round];
  Message message =
      message_about(*chunks_, run.chunk, round.reduce ? MessageKind::kReduce : MessageKind::kGather,
                    self_, groups_.leader(round.send->peer), run.iteration);
  message.wants_return = lent;
  message.round = static_cast<std::uint16_t>(run.round);
  message.segment = run.segment;
  message.payload_bytes = payload.size();
  run.lent += lent ? 1 : 0;
  effects.send(message, std::move(payload));
}

Work CollectiveRunner::work_on(const Run& run, WorkKind kind, const Range& range) const {
  Work work = sluice::work_on(*chunks_, run.chunk, kind, self_, run.iteration);
  work.round = static_cast<std::uint16_t>(run.round);
  work.coded = strategy_.coded();
  work.segment = run.segment;
  work.range = range;
  work.slot = strategy_.gradient_slot(run.iteration);
  return work;
}

void CollectiveRunner::pack(Run& run, const Range& range, Effects& effects) const {
  Work work = work_on(run, WorkKind::kEncode, range);
  work.output_bytes = coded_size(strategy_, range.size(), run.iteration);
  if (!strategy_.sparse()) {
    const Round& round = run.plan[run.round];
    work.exact = !round.reduce || adds_to_what_it_sends(round);
    work.feedback =
        strategy_.error_feedback && round.send.has_value() && sends_first(run.plan, run.round);
  }
  run.step = Step::kPacking;
  effects.start(std::move(work));
}

}  // namespace sluice
