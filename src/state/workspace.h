#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/zeroed_buffer.h"
#include "model/layer.h"
#include "model/topology.h"
#include "optimizers/optimizer_state.h"
#include "optimizers/update_rule.h"
#include "protocol/work.h"
#include "state/change_log.h"
#include "state/coder.h"
#include "state/outer_state.h"

namespace sluice {

// The numbers of one node and the arithmetic on them. A driver with real gradients calls it to
// carry out the node's effects. The spans belong to the node; nothing here knows of threads.
class Workspace {
 public:
  // A worker has one or more gradient buffers, a server one for sums that it begins. The layers
  // tile the parameters; only sparse codecs and updates of whole layers use them.
  Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients,
            const UpdateRule& rule, const Strategy& strategy, const Topology& topology,
            std::span<const Layer> layers = {});

  std::span<float> view(const BufferRange& what) const;
  void land(const BufferRange& where, const Payload& payload) const;
  // Returns the output of the work, if it has one.
  Payload execute(const Work& work);
  // Whether parts of an update may be made by themselves.
  bool updates_in_parts() const { return rule_.elementwise(); }
  // Keeps global parameters beside its own, which are a worker's, and makes outer steps with them.
  void keep_global(const Cadence& cadence) { outer_.emplace(cadence, parameters_); }
  // Only after keep_global().
  std::span<const float> global_parameters() const { return outer().global(); }
  // What the optimiser remembers; only the ranges that this node updates are in use.
  const OptimizerState& optimizer_state() const { return state_; }

 private:
  Payload update(const Work& work);
  void apply(const Work& work, std::span<const std::span<const float>> sources);
  void note_norm(const Work& work);
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
  void outer_step(const Work& work);
  const OuterState& outer() const;
  std::span<float> gradient(const Work& work) const;

  std::span<float> parameters_;
  std::vector<std::span<float>> gradients_;  // by slot
  UpdateRule rule_;
  OptimizerState state_;
  std::vector<Range> layers_;  // if updates are of whole layers
  float clip_factor_ = 1;      // of the updates that come next
  bool sparse_;
  std::optional<Coder> coder_;
  ChangeLog changed_;
  std::optional<OuterState> outer_;
};

}  // namespace sluice
