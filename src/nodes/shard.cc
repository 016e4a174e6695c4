#include "nodes/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "codecs/size.h"
#include "partition/about.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

// What a unit of work costs besides its arithmetic: to hand it over, perhaps to another thread, and
// to write and read the sum once more.
constexpr double kUnitOfWorkNs = 10'000;

}  // namespace

Shard::Shard(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : strategy_(job.strategy),
      staleness_(traits_of(job.strategy.algorithm).max_lead(job.strategy)),
      add_ns_per_byte_(job.link.reduce_ns_per_byte),
      living_(job),
      groups_(job),
      chunks_(std::move(chunks)),
      self_(self),
      slots_(chunks_->size_at_server(job.topology.server_index(self))) {
  for (Slot& slot : slots_) {
    slot.slowest = job.first;
    if (staleness_ > 0) {
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        slot.clocks.push_back(job.start_of(groups_.leader(i)));
      }
    }
  }
}

void Shard::handle(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const ChunkId chunk = received->message.chunk;
    Slot& slot = slot_of(chunk);
    switch (received->message.kind) {
      case MessageKind::kPush:
        return on_push(*received, slot, effects);
      case MessageKind::kPull:
        slot.pulls.push_back(received->message);
        return go_on(chunk, slot, effects);
      default:
        fail_check("a server understands push and pull");
    }
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    Slot& slot = slot_of(work.chunk);
    if (work.kind == WorkKind::kReduce) {
      slot.summing = false;
      sum_prefix(work.chunk, slot, effects);
      return go_on(work.chunk, slot, effects);
    }
    --slot.working;
    if (work.kind == WorkKind::kUpdate || work.kind == WorkKind::kSum) {
      on_updated(*finished, slot, effects);
    } else {
      tell(MessageKind::kParameters, work.chunk, work.origin, work.iteration, finished->output,
           slot, effects);
    }
    return go_on(work.chunk, slot, effects);
  }
  if (const auto* lost = std::get_if<PeerLost>(&event)) {
    on_peer_lost(lost->host, effects);
  }
  if (const auto* joined = std::get_if<PeerJoined>(&event)) {
    on_peer_joined(*joined);
  }
}

BufferRange Shard::landing(const Message& /*message*/) const { return {}; }

void Shard::on_push(const Received& event, Slot& slot, Effects& effects) {
  const Message& push = event.message;
  if (staleness_ > 0) {
    slot.updates.push_back(update_with(push, {event.payload}));
    return go_on(push.chunk, slot, effects);
  }
  slot.gradients.resize(groups_.size());
  check_turn(push, slot);
  slot.gradients[groups_.index_of(push.from)] = event.payload;
  while (slot.prefix < groups_.size() && slot.gradients[slot.prefix].size() > 0) {
    ++slot.prefix;
  }
  if (slot.prefix < groups_.size()) {
    return sum_prefix(push.chunk, slot, effects);
  }
  const bool begun = slot.summed > 0;
  Work update = update_with(push, take_prefix(slot));
  update.begun = begun;
  update.contributors = update.workers;
  slot.updates.push_back(std::move(update));
  slot.prefix = slot.summed = 0;
  go_on(push.chunk, slot, effects);
}

// A gradient goes into the next update of its chunk, once.
void Shard::check_turn(const Message& push, const Slot& slot) const {
  const Iteration next = slot.slowest + 1;
  const std::size_t index = groups_.index_of(push.from);
  const bool again = index < slot.summed || slot.gradients[index].size() > 0;
  if (push.iteration != next || again) {
    throw BadMessage(topology().host_of(push.from).index(),
                     fmt::format("the gradient of chunk {} for iteration {}, expected that for {}",
                                 push.chunk.index(), push.iteration, again ? next + 1 : next));
  }
}

Work Shard::update_with(const Message& push, std::vector<Payload> gradients) const {
  const WorkKind kind = strategy_.servers_sum() ? WorkKind::kSum : WorkKind::kUpdate;
  Work update = work_on(push.chunk, kind, push.from, push.iteration);
  update.contributors = static_cast<std::uint32_t>(gradients.size() * groups_.group());
  update.workers = static_cast<std::uint32_t>(living_.workers());
  update.sources = std::move(gradients);
  if (strategy_.sparse()) {
    Bytes bytes = 0;
    for (const Payload& source : update.sources) {
      bytes += source.size();
    }
    update.output_bytes = merged_size(strategy_, bytes, update.range.size());
  } else if (strategy_.servers_pack()) {
    update.feedback = strategy_.error_feedback;
    update.output_bytes = coded_size(strategy_, update.range.size(), update.iteration);
  }
  return update;
}

// The gradients of the prefix that are not summed yet.
std::vector<Payload> Shard::take_prefix(Slot& slot) {
  std::vector<Payload> gradients;
  gradients.reserve(slot.prefix - slot.summed);
  for (; slot.summed < slot.prefix; ++slot.summed) {
    gradients.push_back(std::exchange(slot.gradients[slot.summed], {}));
  }
  return gradients;
}

// Sparse gradients are merged when all are here.
void Shard::sum_prefix(ChunkId chunk, Slot& slot, Effects& effects) const {
  const bool fresh = slot.summed == 0;
  const auto adds = static_cast<double>(slot.prefix - slot.summed) - (fresh ? 1 : 0);
  const auto bytes = static_cast<double>((*chunks_)[chunk].range.size() * kFloatBytes);
  const bool pays = adds * bytes * add_ns_per_byte_ >= kUnitOfWorkNs;
  if (!pays || slot.summing || strategy_.sparse()) {
    return;
  }
  Work sum = work_on(chunk, WorkKind::kReduce, self_, slot.slowest + 1);
  sum.fresh = fresh;
  sum.sources = take_prefix(slot);
  slot.summing = true;
  effects.start(std::move(sum));
}

// Answers come first: they are about updates that are made.
void Shard::go_on(ChunkId chunk, Slot& slot, Effects& effects) {
  if (slot.working == 0 && !slot.pulls.empty()) {
    answer_pulls(chunk, slot, effects);
  }
  if (slot.working == 0 && !slot.summing && !slot.updates.empty()) {
    Work next = std::move(slot.updates.front());
    slot.updates.pop_front();
    ++slot.working;
    effects.start(std::move(next));
  }
}

Work Shard::work_on(ChunkId chunk, WorkKind kind, NodeId origin, Iteration iteration) const {
  Work work = sluice::work_on(*chunks_, chunk, kind, self_, iteration);
  work.coded = strategy_.coded();
  work.origin = origin;
  return work;
}

void Shard::on_updated(const Finished& event, Slot& slot, Effects& effects) {
  const Work& work = event.work;
  slot.result = event.output;
  advance(slot, work);
  if (strategy_.exchange == Exchange::kPullAfterNotify) {
    tell_all(MessageKind::kNotify, work.chunk, work.iteration, slot, effects);
  } else if (strategy_.exchange == Exchange::kBroadcast && staleness_ == 0) {
    tell_all(MessageKind::kParameters, work.chunk, work.iteration, slot, effects);
  } else if (strategy_.exchange == Exchange::kBroadcast) {
    answer(work.chunk, work.origin, work.iteration, slot, effects);
  }
}

void Shard::advance(Slot& slot, const Work& update) const {
  if (staleness_ == 0) {
    slot.slowest = update.iteration;
    return;
  }
  // By one, since a later gradient may have overtaken this one.
  const Iteration before = slot.clocks[groups_.index_of(update.origin)]++;
  if (before == slot.slowest) {
    slot.slowest = slowest_of(slot);
  }
}

Iteration Shard::slowest_of(const Slot& slot) const {
  Iteration slowest = std::numeric_limits<Iteration>::max();
  for (std::size_t i = 0; i < slot.clocks.size(); ++i) {
    slowest = living_.has(groups_.leader(i)) ? std::min(slowest, slot.clocks[i]) : slowest;
  }
  return slowest;
}

// What has come of its gradients is still applied.
void Shard::on_peer_lost(HostId host, Effects& effects) {
  check(staleness_ > 0, "who waits for all workers ends with the first that is lost");
  living_.lose(host);
  for (std::size_t c = 0; c < chunks_->size(); ++c) {
    if (!is_here(ChunkId(c))) {
      continue;
    }
    Slot& slot = slot_of(ChunkId(c));
    std::erase_if(slot.pulls, [&](const Message& pull) { return !living_.has(pull.from); });
    slot.slowest = slowest_of(slot);
    go_on(ChunkId(c), slot, effects);
  }
}

void Shard::on_peer_joined(const PeerJoined& joined) {
  living_.regain(joined.host);
  for (Slot& slot : slots_) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (topology().host_of(groups_.leader(i)) == joined.host) {
        slot.clocks[i] = joined.iteration;
      }
    }
    slot.slowest = slowest_of(slot);
  }
}

void Shard::answer_pulls(ChunkId chunk, Slot& slot, Effects& effects) {
  auto& pulls = slot.pulls;
  const auto answered = std::stable_partition(
      pulls.begin(), pulls.end(), [&](const Message& pull) { return !may_have(pull, slot); });
  for (auto pull = answered; pull != pulls.end(); ++pull) {
    answer(chunk, pull->from, pull->iteration, slot, effects);
  }
  pulls.erase(answered, pulls.end());
}

// Its own gradients are in, and nobody is so far behind that it would get too far ahead.
bool Shard::may_have(const Message& pull, const Slot& slot) const {
  const Iteration own = staleness_ == 0 ? slot.slowest : slot.clocks[groups_.index_of(pull.from)];
  return own >= pull.iteration && slot.slowest >= pull.iteration - staleness_;
}

Shard::Slot& Shard::slot_of(ChunkId chunk) {
  check(is_here(chunk), "a server is asked for its own chunks");
  return slots_[chunks_->place_at_server(chunk)];
}

bool Shard::is_here(ChunkId chunk) const {
  return chunk.index() < chunks_->size() && topology().server((*chunks_)[chunk].server) == self_;
}

// Every server begins with another worker, so that not all of them flood the first one.
void Shard::tell_all(MessageKind kind, ChunkId chunk, Iteration iteration, Slot& slot,
                     Effects& effects) {
  std::size_t next =
      groups_.index_of(NodeId(topology().server_index(self_) * topology().workers_per_host())) %
      groups_.size();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const NodeId worker = groups_.leader(next);
    next = next + 1 < groups_.size() ? next + 1 : 0;
    if (kind == MessageKind::kParameters) {
      answer(chunk, worker, iteration, slot, effects);
    } else {
      tell(kind, chunk, worker, iteration, {}, slot, effects);
    }
  }
}

// Where workers do not wait for each other, the next update may come while this one's result is
// being read, and each worker lacks something else.
void Shard::answer(ChunkId chunk, NodeId worker, Iteration iteration, Slot& slot,
                   Effects& effects) {
  const bool together = staleness_ == 0;
  const BufferRange parameters{Buffer::kParameters, (*chunks_)[chunk].range};
  Payload payload;
  if (strategy_.sparse() && !together) {
    Work changes = work_on(chunk, WorkKind::kChanges, worker, iteration);
    changes.output_bytes = merged_size(
        strategy_,
        static_cast<Bytes>(groups_.size()) * coded_size(strategy_, changes.range.size(), iteration),
        changes.range.size());
    ++slot.working;
    return effects.start(std::move(changes));
  }
  if (strategy_.servers_pack()) {
    payload = slot.result;
  } else {
    payload = together ? effects.borrow(self_, parameters) : effects.copy(self_, parameters);
  }
  tell(MessageKind::kParameters, chunk, worker, iteration, std::move(payload), slot, effects);
}

void Shard::tell(MessageKind kind, ChunkId chunk, NodeId worker, Iteration iteration,
                 Payload payload, const Slot& slot, Effects& effects) const {
  Message message = message_about(*chunks_, chunk, kind, self_, worker, iteration);
  message.slowest = slot.slowest;
  message.payload_bytes = payload.size();
  effects.send(message, std::move(payload));
}

}  // namespace sluice
