#include "nodes/job_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "codecs/block_top_k.h"
#include "codecs/size.h"
#include "codecs/sparse.h"
#include "collectives/choice.h"
#include "collectives/plan.h"
#include "collectives/segments.h"
#include "nodes/algorithms.h"
#include "nodes/random_pairs.h"

namespace sluice {
namespace {

// Of an urgency, so many bits are the iteration.
constexpr Iteration kMaxIteration = std::numeric_limits<std::uint32_t>::max();

bool is_hop(MessageKind kind) {
  return kind == MessageKind::kReduce || kind == MessageKind::kGather;
}

}  // namespace

JobRules::JobRules(const Job& job, std::shared_ptr<const ChunkMap> chunks)
    : strategy_(job.strategy),
      topology_(job.topology),
      groups_(job),
      first_(job.first),
      chunks_(std::move(chunks)) {
  if (has_kind(MessageKind::kReduce)) {
    collectives_ = collectives_for(job, *chunks_);
  }
}

Result<void> JobRules::check(const Message& message) const {
  std::string fault = fault_of(message);
  return fault.empty() ? Result<void>() : Error(std::move(fault));
}

Result<void> JobRules::check_payload(const Message& message,
                                     std::span<const std::byte> payload) const {
  const bool hops = is_hop(message.kind);
  if (strategy_.gathered() && hops) {
    return check_codes(payload, plan_of(message)[message.round].receive->range.size());
  }
  if (!strategy_.sparse() ||
      !(hops || message.kind == MessageKind::kPush || is_packed_answer(message))) {
    return {};
  }
  const std::int64_t length = hops ? plan_of(message)[message.round].receive->range.size()
                                   : (*chunks_)[message.chunk].range.size();
  const auto parsed = SparseView::parse(payload, length);
  return parsed ? Result<void>() : parsed.error();
}

Result<void> JobRules::check_codes(std::span<const std::byte> codes, std::int64_t params) const {
  const BlockTopK codec(strategy_.top_k);
  const auto size = static_cast<std::size_t>(codec.size(params));
  for (std::size_t begin = 0; begin < codes.size(); begin += size) {
    const std::span<const std::byte> code =
        codes.subspan(begin, std::min(size, codes.size() - begin));
    if (auto valid = codec.check(code, params); !valid) {
      return valid;
    }
  }
  return {};
}

// In a pipeline, sums of several iterations overtake each other.
bool JobRules::is_once_per_iteration() const {
  return traits_of(strategy_.algorithm).coupling == Coupling::kLockStep;
}

std::string JobRules::fault_of(const Message& message) const {
  if (std::string fault = fault_of_fields(message); !fault.empty()) {
    return fault;
  }
  const auto kind = static_cast<int>(message.kind);
  if (!has_kind(message.kind)) {
    return fmt::format("this job has no messages of kind {} between processes", kind);
  }
  if (is_hop(message.kind)) {
    return fault_of_hop(message);
  }
  if (message.round != 0 || message.segment != 0) {
    return fmt::format("a message of kind {} has no round {} and no segment {}", kind,
                       message.round, message.segment);
  }
  if (!has_route(message)) {
    return fmt::format("a message of kind {} about chunk {} does not go from node {} to node {}",
                       kind, message.chunk.index(), message.from.index(), message.to.index());
  }
  return fault_of_size(message, sizes_of(message));
}

std::string JobRules::fault_of_fields(const Message& message) const {
  const std::size_t nodes = topology_.nodes();
  if (message.from.index() >= nodes || message.to.index() >= nodes) {
    return fmt::format("it goes from node {} to node {}, and there are {} nodes",
                       message.from.index(), message.to.index(), nodes);
  }
  if (message.chunk.index() >= chunks_->size()) {
    return fmt::format("it is about chunk {}, and there are {} chunks", message.chunk.index(),
                       chunks_->size());
  }
  if (const auto priority = (*chunks_)[message.chunk].priority; message.priority != priority) {
    return fmt::format("it says that layer {} waits for chunk {}, and layer {} does",
                       message.priority, message.chunk.index(), priority);
  }
  if (message.iteration <= first_ || message.iteration > kMaxIteration) {
    return fmt::format("it is about iteration {}, expected {} ... {}", message.iteration,
                       first_ + 1, kMaxIteration);
  }
  if (message.slowest > message.iteration) {
    return fmt::format("it says that all workers are at iteration {}, and is itself about {}",
                       message.slowest, message.iteration);
  }
  if (message.kind != MessageKind::kShare && message.weight != 0) {
    return fmt::format("a message of kind {} has no weight {}", static_cast<int>(message.kind),
                       message.weight);
  }
  return "";
}

// A hop is what the receiver's own plan awaits in that round.
std::string JobRules::fault_of_hop(const Message& message) const {
  if (!leads(message.from) || !leads(message.to)) {
    return fmt::format("a sum has no hop from node {} to node {}", message.from.index(),
                       message.to.index());
  }
  if ((*chunks_)[message.chunk].factor == Factor::kRest) {
    return fmt::format("it is about chunk {}, which travels as the factors of its matrix",
                       message.chunk.index());
  }
  if (message.segment >= segments_of(message.chunk)) {
    return fmt::format("it is about segment {} of chunk {}, which has {}", message.segment,
                       message.chunk.index(), segments_of(message.chunk));
  }
  const Plan& plan = plan_of(message);
  const bool reduces = message.kind == MessageKind::kReduce;
  const bool awaited = message.round < plan.size() && plan[message.round].receive.has_value() &&
                       plan[message.round].reduce == reduces &&
                       plan[message.round].receive->peer == groups_.index_of(message.from);
  if (!awaited) {
    return fmt::format("node {} awaits nothing from node {} in round {} of {}, to be {}",
                       message.to.index(), message.from.index(), message.round, plan.size(),
                       reduces ? "added" : "copied");
  }
  return fault_of_size(
      message, gradient_sizes(plan[message.round].receive->range.size(), message.iteration));
}

const Plan& JobRules::plan_of(const Message& hop) const {
  const Collective collective = collectives_[hop.chunk.index()];
  const std::size_t receiver = groups_.index_of(hop.to);
  const std::int64_t length =
      range_of_segment((*chunks_)[hop.chunk].range, segments_of(hop.chunk), hop.segment).size();
  const auto [known, is_new] = plans_.try_emplace({collective, receiver, length});
  if (is_new) {
    known->second = make_plan(collective, receiver, groups_.size(), {0, length});
  }
  return known->second;
}

std::size_t JobRules::segments_of(ChunkId chunk) const {
  return sluice::segments_of(strategy_, collectives_[chunk.index()], groups_.size(),
                             (*chunks_)[chunk].range.size());
}

std::string JobRules::fault_of_size(const Message& message, const Sizes& sizes) {
  if (message.payload_bytes >= sizes.min && message.payload_bytes <= sizes.max) {
    return "";
  }
  return fmt::format("it has {} bytes, expected {}", message.payload_bytes,
                     sizes.min == sizes.max ? fmt::format("{}", sizes.min)
                                            : fmt::format("{} ... {}", sizes.min, sizes.max));
}

bool JobRules::has_kind(MessageKind kind) const {
  const Exchange exchange = strategy_.exchange;
  const bool used = nodes_of(strategy_.algorithm).messages.contains(kind);
  switch (kind) {
    case MessageKind::kPush:
    case MessageKind::kElastic:
      return used && strategy_.uses_servers();
    case MessageKind::kNotify:
      return used && exchange == Exchange::kPullAfterNotify;
    case MessageKind::kPull:
      return used && strategy_.uses_servers() && exchange != Exchange::kBroadcast;
    case MessageKind::kParameters:
      return (used && strategy_.uses_servers()) || groups_.group() > 1;
    case MessageKind::kReduce:
    case MessageKind::kGather:
      return used && exchange == Exchange::kAllReduce && !strategy_.driver_sums();
    case MessageKind::kShare:
    case MessageKind::kSwap:
    case MessageKind::kSwapped:
      return used && exchange == Exchange::kGossip;
    case MessageKind::kAllReduce:
      return false;  // a worker asks its own driver
    case MessageKind::kGradient:
      return groups_.group() > 1;
  }
  return false;
}

bool JobRules::has_route(const Message& message) const {
  const auto& [from, to] = std::pair{message.from, message.to};
  switch (message.kind) {
    case MessageKind::kPush:
    case MessageKind::kPull:
    case MessageKind::kElastic:
      return leads(from) && to == server_of(message.chunk);
    case MessageKind::kNotify:
      return from == server_of(message.chunk) && leads(to);
    case MessageKind::kParameters:
      return follows(to, from) ||
             (strategy_.uses_servers() && from == server_of(message.chunk) && leads(to));
    case MessageKind::kShare:
      return are_workers(from, to) &&
             (strategy_.algorithm != Algorithm::kLocal ||
              partner_of(topology_, strategy_.seed, from, message.iteration) == to);
    case MessageKind::kSwap:
      return are_workers(from, to) && from.index() % 2 == 0 && to.index() % 2 == 1;
    case MessageKind::kSwapped:
      return are_workers(from, to) && from.index() % 2 == 1 && to.index() % 2 == 0;
    case MessageKind::kGradient:
      return follows(from, to);
    case MessageKind::kReduce:
    case MessageKind::kGather:
    case MessageKind::kAllReduce:
      break;
  }
  fail_check("hops have rules of their own");
}

JobRules::Sizes JobRules::sizes_of(const Message& message) const {
  const std::int64_t params = (*chunks_)[message.chunk].range.size();
  const Sizes whole{params * kFloatBytes, params * kFloatBytes};
  switch (message.kind) {
    case MessageKind::kPush:
      return gradient_sizes(params, message.iteration);
    case MessageKind::kNotify:
    case MessageKind::kPull:
      return {};
    case MessageKind::kParameters:
      return is_packed_answer(message) ? gradient_sizes(params, message.iteration) : whole;
    case MessageKind::kShare:
      return strategy_.algorithm == Algorithm::kLocal ? Sizes{2 * whole.min, 2 * whole.max} : whole;
    case MessageKind::kElastic:
    case MessageKind::kSwap:
    case MessageKind::kSwapped:
    case MessageKind::kGradient:
      return whole;
    case MessageKind::kReduce:
    case MessageKind::kGather:
    case MessageKind::kAllReduce:
      break;
  }
  fail_check("hops have rules of their own");
}

bool JobRules::is_packed_answer(const Message& message) const {
  return message.kind == MessageKind::kParameters && strategy_.servers_pack() &&
         !topology_.is_worker(message.from);
}

JobRules::Sizes JobRules::gradient_sizes(std::int64_t params, Iteration iteration) const {
  if (strategy_.sparse()) {
    return {sparse_size(0), sparse_size(params)};
  }
  const Bytes bytes = coded_size(strategy_, params, iteration);
  return {bytes, strategy_.gathered() ? bytes * static_cast<Bytes>(groups_.size()) : bytes};
}

bool JobRules::leads(NodeId node) const {
  return topology_.is_worker(node) && groups_.leader_of(node) == node;
}

bool JobRules::follows(NodeId node, NodeId leader) const {
  return topology_.is_worker(node) && node != leader && groups_.leader_of(node) == leader;
}

bool JobRules::are_workers(NodeId a, NodeId b) const {
  return topology_.is_worker(a) && topology_.is_worker(b) && a != b;
}

}  // namespace sluice
