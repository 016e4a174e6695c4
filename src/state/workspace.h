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

// The numbers of one node and the arithmetic on them. A driver with real gradients calls it to
// carry out the node's effects. The spans belong to the node; nothing here knows of threads.
class Workspace {
 public:
  // A worker has one or more gradient buffers, a server one for sums that it begins. The layers
  // tile the parameters; only sparse codecs use them.
  Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients,
            const UpdateRule& rule, const Strategy& strategy, const Topology& topology,
            std::span<const Layer> layers = {});

  std::span<float> view(const BufferRange& what) const;
  void land(const BufferRange& where, const Payload& payload) const;
  // Returns the output of the work, if it has one.
  Payload execute(const Work& work);

 private:
  Payload update(const Work& work);
  Payload update_sparse(const Work& work);
  Payload encode(const Work& work);
  void sum(const Work& work) const;
  void reduce(const Work& work) const;
  void reduce_coded(std::span<const Payload> before, std::span<const Payload> after,
                    std::span<float> own) const;
  void patch(const Work& work) const;
  Payload changes(const Work& work);
  Payload pull(const Work& work) const;
  void move(const Work& work) const;
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
