#include "sim/numbers.h"

#include <memory>

#include "base/check.h"
#include "compute/server_state.h"

namespace sluice {
namespace {

class IgnoreHooks final : public StepHooks {
 public:
  bool before_layer(LayerId /*layer*/) override { return true; }
  void forward_done() override {}
  void gradient_ready(LayerId /*layer*/) override {}
};

}  // namespace

Numbers::Numbers(const VirtualNumbers* numbers, const Topology& topology) : numbers_(numbers) {
  if (numbers_ == nullptr) {
    return;
  }
  check(numbers_->learners.size() == topology.workers(), "every worker has its learner");
  for (const auto& learner : numbers_->learners) {
    slots_.emplace_back(*learner, numbers_->strategy.gradient_slots());
    workspaces_.emplace_back(learner->parameters(), slots_.back().all(), numbers_->rule,
                             numbers_->strategy, topology.workers());
  }
  const auto initial = numbers_->learners.front()->parameters();
  for (std::size_t s = 0; s < topology.servers(); ++s) {
    server_parameters_.push_back(server_parameters(initial, *numbers_->chunks, s));
    workspaces_.emplace_back(server_parameters_.back().values(), std::vector<std::span<float>>{},
                             numbers_->rule, numbers_->strategy, topology.workers());
  }
}

Payload Numbers::snapshot(const Payload& payload) {
  if (!payload.has_data()) {
    return payload;
  }
  const auto bytes = payload.bytes();
  return Payload::owning(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

Payload Numbers::view(NodeId node, const BufferRange& what) {
  if (numbers_ == nullptr) {
    return Payload(what.range.size() * kFloatBytes);
  }
  return {workspaces_[node.index()].view(what), nullptr};
}

void Numbers::land(NodeId node, const BufferRange& where, const Payload& payload) {
  if (numbers_ != nullptr && where.buffer != Buffer::kNone) {
    workspaces_[node.index()].land(where, payload);
  }
}

Payload Numbers::execute(const Work& work) {
  if (numbers_ == nullptr) {
    return Payload(work.output_bytes > 0 ? work.output_bytes : work.range.size() * kFloatBytes);
  }
  return workspaces_[work.node.index()].execute(work);
}

void Numbers::all_reduce(const Message& request) {
  if (numbers_ == nullptr) {
    return;
  }
  check(!numbers_->strategy.coded(), "a channel that sums by itself knows no codec");
  const Range range = (*numbers_->chunks)[request.chunk].range;
  const BufferRange what{Buffer::kGradients, range, slot_of(request.iteration)};
  const std::size_t workers = numbers_->learners.size();
  Work add;
  add.kind = WorkKind::kReduce;
  add.range = range;
  add.slot = what.slot;
  for (std::size_t w = 1; w < workers; ++w) {
    add.sources.assign(1, view(NodeId(w), what));
    workspaces_[0].execute(add);
  }
  for (std::size_t w = 1; w < workers; ++w) {
    workspaces_[w].land(what, view(NodeId(0), what));
  }
}

void Numbers::compute_gradients(NodeId worker, Iteration iteration) {
  if (numbers_ != nullptr) {
    slots_[worker.index()].use(iteration);
    IgnoreHooks hooks;
    numbers_->learners[worker.index()]->step(iteration, hooks);
  }
}

}  // namespace sluice
