#pragma once

#include <span>
#include <vector>

#include "compute/zeroed_buffer.h"
#include "protocol/work.h"
#include "server/update_rule.h"

namespace sluice {

// The numbers of one node and the arithmetic on them: what a driver with real gradients calls to
// carry out a node's effects. The spans are the node's own; nothing here knows of threads.
class Workspace {
 public:
  // A worker has one or more buffers of gradients, a server none.
  Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients, UpdateRule rule);

  std::span<float> view(const BufferRange& what) const;
  void land(const BufferRange& where, const Payload& payload) const;
  // Returns what the work puts out, if anything.
  Payload execute(const Work& work);

 private:
  void update(const Work& work);
  Payload pull(const Work& work) const;

  std::span<float> parameters_;
  std::vector<std::span<float>> gradients_;  // by slot
  ZeroedBuffer velocity_;
  UpdateRule rule_;
};

}  // namespace sluice
