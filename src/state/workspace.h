#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/zeroed_buffer.h"
#include "model/layer.h"
#include "model/topology.h"
#include "optimizers/update_rule.h"
#include "protocol/work.h"
#include "state/change_log.h"
#include "state/coder.h"

namespace sluice {

// The numbers of one node and the arithmetic on them: what a driver with real gradients calls to
// carry out a node's effects. The spans are the node's own; nothing here knows of threads.
class Workspace {
 public:
  // A worker has one or more buffers of gradients, a server none. The layers tile the parameters;
  // only what packs sparse gradients needs to know them.
  Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients,
            const UpdateRule& rule, const Strategy& strategy, const Topology& topology,
            std::span<const Layer> layers = {});

  std::span<float> view(const BufferRange& what) const;
  void land(const BufferRange& where, const Payload& payload) const;
  // Returns what the work puts out, if anything.
  Payload execute(const Work& work);

 private:
  Payload update(const Work& work);
  Payload update_sparse(const Work& work);
  Payload encode(const Work& work);
  void reduce(const Work& work) const;
  void patch(const Work& work) const;
  Payload changes(const Work& work);
  Payload pull(const Work& work) const;
  std::span<float> gradient(const Work& work) const;

  std::span<float> parameters_;
  std::vector<std::span<float>> gradients_;  // by slot
  ZeroedBuffer velocity_;
  UpdateRule rule_;
  bool sparse_;
  std::optional<Coder> coder_;
  ChangeLog changed_;
};

}  // namespace sluice
