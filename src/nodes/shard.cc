#include "nodes/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codecs/size.h"
#include "partition/about.h"
#include "wire/bad_message.h"

namespace sluice {

Shard::Shard(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : strategy_(job.strategy),
      staleness_(traits_of(job.strategy.algorithm).max_lead(job.strategy)),
      topology_(job.topology),
      groups_(job),
      chunks_(std::move(chunks)),
      self_(self),
      slots_(chunks_->size()) {
  for (std::size_t c = 0; c < slots_.size(); ++c) {
    if (topology_.server((*chunks_)[ChunkId(c)].server) == self_) {
      slots_[c].clocks.assign(groups_.size(), job.first);
    }
  }
}

void Shard::handle(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    switch (received->message.kind) {
      case MessageKind::kPush:
        on_push(*received);
        break;
      case MessageKind::kPull:
        slot(received->message.chunk).pulls.push_back(received->message);
        break;
      default:
        fail_check("a server understands push and pull");
    }
    return go_on(received->message.chunk, effects);
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    --slot(work.chunk).working;
    if (work.kind == WorkKind::kUpdate) {
      on_updated(*finished, effects);
    } else {
      tell(MessageKind::kParameters, work.chunk, work.origin, work.iteration, finished->output,
           effects);
    }
    go_on(work.chunk, effects);
  }
}

BufferRange Shard::landing(const Message& /*message*/) const { return {}; }

void Shard::on_push(const Received& event) {
  const Message& push = event.message;
  Slot& waiting = slot(push.chunk);
  if (staleness_ > 0) {
    waiting.updates.push_back(update_with(push, {event.payload}));
    return;
  }
  waiting.gradients.resize(groups_.size());
  check_turn(push, waiting);
  waiting.gradients[groups_.index_of(push.from)] = event.payload;
  if (++waiting.arrived == groups_.size()) {
    waiting.arrived = 0;
    waiting.updates.push_back(update_with(push, std::exchange(waiting.gradients, {})));
  }
}

// A gradient goes into the next update of its chunk, once.
void Shard::check_turn(const Message& push, const Slot& waiting) const {
  const std::size_t from = groups_.index_of(push.from);
  const Iteration next = waiting.clocks[from] + 1;
  const bool again = waiting.gradients[from].size() > 0;
  if (push.iteration != next || again) {
    throw BadMessage(topology_.host_of(push.from).index(),
                     fmt::format("the gradient of chunk {} for iteration {}, expected that for {}",
                                 push.chunk.index(), push.iteration, again ? next + 1 : next));
  }
}

Work Shard::update_with(const Message& push, std::vector<Payload> gradients) const {
  Work update = work_on(push.chunk, WorkKind::kUpdate, push.from, push.iteration);
  update.contributors = static_cast<std::uint32_t>(gradients.size() * groups_.group());
  update.workers = static_cast<std::uint32_t>(topology_.workers());
  update.sources = std::move(gradients);
  if (strategy_.sparse()) {
    Bytes bytes = 0;
    for (const Payload& source : update.sources) {
      bytes += source.size();
    }
    update.output_bytes = merged_size(bytes, update.range.size());
  }
  return update;
}

void Shard::start(Work work, Effects& effects) {
  ++slot(work.chunk).working;
  effects.start(std::move(work));
}

// Answers come first: they are about updates that are made.
void Shard::go_on(ChunkId chunk, Effects& effects) {
  Slot& now = slot(chunk);
  if (now.working == 0) {
    answer_pulls(chunk, effects);
  }
  if (now.working == 0 && !now.updates.empty()) {
    Work next = std::move(now.updates.front());
    now.updates.pop_front();
    start(std::move(next), effects);
  }
}

Work Shard::work_on(ChunkId chunk, WorkKind kind, NodeId origin, Iteration iteration) const {
  Work work = sluice::work_on(*chunks_, chunk, kind, self_, iteration);
  work.coded = strategy_.coded();
  work.origin = origin;
  return work;
}

void Shard::on_updated(const Finished& event, Effects& effects) {
  const Work& work = event.work;
  auto& clocks = slot(work.chunk).clocks;
  slot(work.chunk).patch = event.output;
  if (staleness_ == 0) {
    std::fill(clocks.begin(), clocks.end(), work.iteration);
  } else {
    ++clocks[groups_.index_of(work.origin)];  // a later gradient may have overtaken this one
  }
  if (strategy_.exchange == Exchange::kPullAfterNotify) {
    tell_all(MessageKind::kNotify, work.chunk, work.iteration, effects);
  } else if (strategy_.exchange == Exchange::kBroadcast && staleness_ == 0) {
    tell_all(MessageKind::kParameters, work.chunk, work.iteration, effects);
  } else if (strategy_.exchange == Exchange::kBroadcast) {
    answer(work.chunk, work.origin, work.iteration, effects);
  }
}

void Shard::answer_pulls(ChunkId chunk, Effects& effects) {
  auto& pulls = slot(chunk).pulls;
  const auto answered = std::stable_partition(
      pulls.begin(), pulls.end(), [this](const Message& pull) { return !may_have(pull); });
  for (auto pull = answered; pull != pulls.end(); ++pull) {
    answer(chunk, pull->from, pull->iteration, effects);
  }
  pulls.erase(answered, pulls.end());
}

// Its own gradients are in, and nobody is so far behind that it would get too far ahead.
bool Shard::may_have(const Message& pull) const {
  const Slot& of = slots_[pull.chunk.index()];
  return of.clocks[groups_.index_of(pull.from)] >= pull.iteration &&
         slowest(pull.chunk) >= pull.iteration - staleness_;
}

Shard::Slot& Shard::slot(ChunkId chunk) {
  Slot& of = slots_.at(chunk.index());
  check(!of.clocks.empty(), "a server is asked for its own chunks");
  return of;
}

Iteration Shard::slowest(ChunkId chunk) const {
  const auto& clocks = slots_[chunk.index()].clocks;
  return *std::min_element(clocks.begin(), clocks.end());
}

// Every server begins with another worker, so that not all of them flood the first one.
void Shard::tell_all(MessageKind kind, ChunkId chunk, Iteration iteration, Effects& effects) {
  const std::size_t first =
      groups_.index_of(NodeId(topology_.server_index(self_) * topology_.workers_per_host()));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const NodeId worker = groups_.leader((first + i) % groups_.size());
    if (kind == MessageKind::kParameters) {
      answer(chunk, worker, iteration, effects);
    } else {
      tell(kind, chunk, worker, iteration, {}, effects);
    }
  }
}

// Where workers do not wait for each other, the next update may come while this one's result is
// being read, and each worker lacks something else.
void Shard::answer(ChunkId chunk, NodeId worker, Iteration iteration, Effects& effects) {
  const bool together = staleness_ == 0;
  const BufferRange parameters{Buffer::kParameters, (*chunks_)[chunk].range};
  Payload payload;
  if (strategy_.sparse() && !together) {
    Work changes = work_on(chunk, WorkKind::kChanges, worker, iteration);
    changes.output_bytes = merged_size(
        static_cast<Bytes>(groups_.size()) * coded_size(strategy_, changes.range.size(), iteration),
        changes.range.size());
    return start(std::move(changes), effects);
  }
  if (strategy_.sparse()) {
    payload = slot(chunk).patch;
  } else {
    payload = together ? effects.borrow(self_, parameters) : effects.copy(self_, parameters);
  }
  tell(MessageKind::kParameters, chunk, worker, iteration, std::move(payload), effects);
}

void Shard::tell(MessageKind kind, ChunkId chunk, NodeId worker, Iteration iteration,
                 Payload payload, Effects& effects) const {
  Message message = message_about(*chunks_, chunk, kind, self_, worker, iteration);
  message.slowest = slowest(chunk);
  message.payload_bytes = payload.size();
  effects.send(message, std::move(payload));
}

}  // namespace sluice
