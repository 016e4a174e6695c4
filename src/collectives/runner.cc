#include "collectives/runner.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

bool overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

// A reduction into what is being sent in the same round would change it under the peer's eyes.
bool must_copy(const Round& round) {
  return round.receive.has_value() && overlap(round.send->range, round.receive->range);
}

}  // namespace

CollectiveRunner::CollectiveRunner(std::vector<Collective> collectives, NodeId self,
                                   std::size_t workers, std::size_t slots,
                                   std::shared_ptr<const ChunkMap> chunks)
    : collectives_(std::move(collectives)),
      self_(self),
      workers_(workers),
      slots_(slots),
      chunks_(std::move(chunks)),
      runs_(chunks_->size() * slots) {}

std::size_t CollectiveRunner::slot_of(Iteration iteration) const {
  return static_cast<std::size_t>(iteration - 1) % slots_;
}

std::size_t CollectiveRunner::index_of(ChunkId chunk, Iteration iteration) const {
  return chunk.index() * slots_ + slot_of(iteration);
}

bool CollectiveRunner::begin(ChunkId chunk, Iteration iteration, Effects& effects) {
  Run& run = runs_[index_of(chunk, iteration)];
  check(run.plan.empty(), "a slot's last sum is done before its next begins");
  run.chunk = chunk;
  run.iteration = iteration;
  run.plan =
      make_plan(collectives_[chunk.index()], self_.index(), workers_, (*chunks_)[chunk].range);
  run.round = 0;
  run.entered = false;
  return done_if(advance(run, effects), run).has_value();
}

std::optional<CollectiveRunner::Done> CollectiveRunner::handle(const Event& event,
                                                               Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const Message& message = received->message;
    Run& run = runs_[index_of(message.chunk, message.iteration)];
    run.arrivals.emplace_back(message.round, received->payload);
    return done_if(!run.plan.empty() && advance(run, effects), run);
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    Run& run = runs_[index_of(finished->work.chunk, finished->work.iteration)];
    ++run.round;
    run.entered = false;
    run.reducing = false;
    return done_if(advance(run, effects), run);
  }
  if (const auto* returned = std::get_if<Returned>(&event)) {
    Run& run = runs_[index_of(returned->message.chunk, returned->message.iteration)];
    --run.lent;
    return done_if(advance(run, effects), run);
  }
  return std::nullopt;
}

BufferRange CollectiveRunner::landing(const Message& message) const {
  if (message.kind != MessageKind::kGather) {
    return {};
  }
  // Whoever has the whole sum has this worker's share of it, so the plan is under way here too.
  const Plan& plan = runs_[index_of(message.chunk, message.iteration)].plan;
  check(message.round < plan.size(), "a gathered part belongs to a round of the plan");
  return {Buffer::kGradients, plan[message.round].receive->range, slot_of(message.iteration)};
}

// Enters rounds until one has to wait. True when the last is through and nothing is lent any more.
bool CollectiveRunner::advance(Run& run, Effects& effects) {
  if (run.reducing) {
    return false;  // a peer that is done may already have sent this round of the next iteration
  }
  for (; run.round < run.plan.size(); ++run.round, run.entered = false) {
    const Round& round = run.plan[run.round];
    if (!run.entered) {
      run.entered = true;
      send(run, effects);
    }
    if (!round.receive.has_value()) {
      continue;
    }
    const auto arrival = std::find_if(run.arrivals.begin(), run.arrivals.end(),
                                      [&](const auto& a) { return a.first == run.round; });
    if (arrival == run.arrivals.end()) {
      return false;
    }
    Payload payload = std::move(arrival->second);
    run.arrivals.erase(arrival);
    if (round.reduce) {
      run.reducing = true;
      reduce(run, std::move(payload), effects);
      return false;
    }
  }
  return run.lent == 0;
}

void CollectiveRunner::send(Run& run, Effects& effects) const {
  const Round& round = run.plan[run.round];
  if (!round.send.has_value()) {
    return;
  }
  const BufferRange what{Buffer::kGradients, round.send->range, slot_of(run.iteration)};
  const bool copied = must_copy(round);
  Message message;
  message.kind = round.reduce ? MessageKind::kReduce : MessageKind::kGather;
  message.wants_return = !copied;
  message.round = static_cast<std::uint16_t>(run.round);
  message.priority = (*chunks_)[run.chunk].priority;
  message.from = self_;
  message.to = NodeId(round.send->peer);
  message.chunk = run.chunk;
  message.iteration = run.iteration;
  Payload payload = copied ? effects.copy(self_, what) : effects.borrow(self_, what);
  message.payload_bytes = payload.size();
  run.lent += copied ? 0 : 1;
  effects.send(message, std::move(payload));
}

void CollectiveRunner::reduce(const Run& run, Payload source, Effects& effects) const {
  Work work;
  work.kind = WorkKind::kReduce;
  work.round = static_cast<std::uint16_t>(run.round);
  work.priority = (*chunks_)[run.chunk].priority;
  work.node = self_;
  work.chunk = run.chunk;
  work.iteration = run.iteration;
  work.range = run.plan[run.round].receive->range;
  work.slot = slot_of(run.iteration);
  work.sources.push_back(std::move(source));
  effects.start(std::move(work));
}

std::optional<CollectiveRunner::Done> CollectiveRunner::done_if(bool finished, Run& run) {
  if (!finished) {
    return std::nullopt;
  }
  run.plan.clear();
  return Done{run.chunk, run.iteration};
}

}  // namespace sluice
