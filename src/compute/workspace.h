#pragma once

#include <span>

#include "compute/zeroed_buffer.h"
#include "protocol/work.h"
#include "server/update_rule.h"

namespace sluice {

// The numbers of one node and the arithmetic on them: what a driver with real gradients calls to
// carry out a node's effects. The spans are the node's own; nothing here knows of threads.
class Workspace {
 public:
  // A worker's replica: its learner's buffers.
  Workspace(std::span<float> parameters, std::span<float> gradients, UpdateRule rule);

  std::span<float> view(const BufferRange& what) const;
  void land(const BufferRange& where, const Payload& payload) const;
  void execute(const Work& work);

 private:
  std::span<float> parameters_;
  std::span<float> gradients_;
  ZeroedBuffer velocity_;
  UpdateRule rule_;
};

}  // namespace sluice
