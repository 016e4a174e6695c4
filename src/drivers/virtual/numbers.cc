#include "drivers/virtual/numbers.h"

#include <memory>

namespace sluice {

Numbers::Numbers(const VirtualNumbers* numbers, const Topology& topology) : numbers_(numbers) {
  if (numbers_ == nullptr) {
    return;
  }
  state_ = numbers_->state;
  if (state_ == nullptr) {
    own_.emplace(topology, numbers_->learners, *numbers_->chunks, numbers_->strategy,
                 numbers_->rule);
    state_ = &*own_;
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
  return {state_->workspace(node).view(what), nullptr};
}

void Numbers::land(NodeId node, const BufferRange& where, const Payload& payload) {
  if (numbers_ != nullptr && where.buffer != Buffer::kNone) {
    state_->workspace(node).land(where, payload);
  }
}

Payload Numbers::execute(const Work& work) {
  if (numbers_ == nullptr) {
    return Payload(work.output_bytes > 0 ? work.output_bytes : work.range.size() * kFloatBytes);
  }
  return state_->workspace(work.node).execute(work);
}

void Numbers::all_reduce(const Message& request) {
  if (numbers_ == nullptr) {
    return;
  }
  check(!numbers_->strategy.coded(), "an all-reduce channel has no codec");
  const Range range = (*numbers_->chunks)[request.chunk].range;
  const BufferRange what{Buffer::kGradients, range, numbers_->strategy.sum_slot(request.iteration)};
  const std::size_t workers = numbers_->learners.size();
  Work add;
  add.kind = WorkKind::kReduce;
  add.range = range;
  add.slot = what.slot;
  for (std::size_t w = 1; w < workers; ++w) {
    add.sources.assign(1, view(NodeId(w), what));
    state_->workspace(NodeId(0)).execute(add);
  }
  for (std::size_t w = 1; w < workers; ++w) {
    state_->workspace(NodeId(w)).land(what, view(NodeId(0), what));
  }
}

}  // namespace sluice
