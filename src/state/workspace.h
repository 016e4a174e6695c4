#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/zeroed_buffer.h"
#include "model/layer.h"
#include "model/topology.h"
#include "optimizers/optimizer_state.h"
#include "optimizers/update_rule.h"
#include "protocol/work.h"
#include "state/change_log.h"
#include "state/coder.h"
#include "state/factor_coder.h"
#include "state/learners_factors.h"
#include "state/outer_state.h"
#include "state/remembered.h"
#include "state/work_in_parts.h"

namespace sluice {

// The numbers of one node and the arithmetic on them. A driver with real gradients calls it to
// carry out the node's effects. The spans belong to the node; nothing here knows of threads.
class Workspace {
 public:
  // A worker has one or more gradient buffers, a server one for sums that it begins. The layers
  // tile the parameters; only sparse and factored codecs and updates of whole layers use them.
  Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients,
            const UpdateRule& rule, const Strategy& strategy, const Topology& topology,
            std::span<const Layer> layers = {});

  std::span<float> view(const BufferRange& what) const;
  void land(const BufferRange& where, const Payload& payload) const;
  // Returns the output of the work, if it has one.
  Payload execute(const Work& work);
  // Keeps global parameters beside its own, which are a worker's, and makes outer steps with them.
  void keep_global(const Cadence& cadence) { outer_.emplace(cadence, parameters_); }
  // Where the strategy says that learners factor, before any work.
  void leave_products_to(LearnersFactors factors) { learners_factors_ = std::move(factors); }
  // Only after keep_global().
  std::span<const float> global_parameters() const { return outer().global(); }

  // The same in steps, in which several threads may do different works, on ranges that do not
  // overlap, and the parts of one: begin, prepare, then passes over all parts until there are no
  // more; then the output is there. Some work is not cut, whatever the number of parts.
  WorkInParts begin(const Work& work, std::int64_t parts) const;
  // One work of the node at a time.
  void prepare(WorkInParts& doing);
  void do_part(WorkInParts& doing, std::size_t part);
  // After a pass, by the thread that did its last part.
  bool more(WorkInParts& doing) const;
  // Whether other threads may do this work while the node starts more.
  bool stands_alone(const Work& work) const;
  // Works that wait for a device, on different ranges, all at once; one call at a time.
  void do_together(std::span<const Work> works) const;

  // All that later iterations depend on. Gradients are among it where the strategy uses their sums
  // iterations later.
  std::vector<Remembered> remembered();
  // After keep_global(), of this range: what all workers have in common that have the same sums.
  std::vector<std::span<float>> in_common(const Range& range);
  // Between two phases, of a server: this worker is a copy of the other one, and has been told as
  // much.
  void treat_alike(NodeId worker, NodeId other) { changed_.treat_alike(worker, other); }
  // Between two phases: begins with the global parameters there.
  void take_over(const Range& range);
  // Between two phases: nobody has the sum of the exchange that this range began last.
  void give_up_exchange(const Range& range);

  // What the optimiser remembers; only the ranges that this node updates are in use.
  const OptimizerState& optimizer_state() const { return state_; }

 private:
  bool goes_in_parts(const Work& work) const;
  bool packs_dense(const Work& work) const;
  // Packing or unpacking that the learner does: the code is, or belongs, in the gradient's memory.
  bool is_learners(const Work& work) const;
  Payload pass_code(const Work& work) const;
  // The host's part of the works on a matrix.
  void pass_factors(const Work& work) const;
  // Tells a learner that packs what has changed in its parameters.
  void leave_patch(const Work& work, std::span<const std::byte> patch) const;
  Payload execute_whole(const WorkInParts& doing);
  void update(const Work& work, const Range& range);
  void apply(const Work& work, const Range& range, std::span<const std::span<const float>> sources);
  void note_norm(const Work& work);
  Payload update_sparse(const Work& work);
  void decode(const Work& work, const Range& range) const;
  void patch(const Work& work) const;
  Payload changes(const Work& work);
  Payload outer_gradient(const Work& work) const;
  void outer_step(const Work& work, const Range& range);
  const OuterState& outer() const;
  std::span<float> gradient(const Work& work, const Range& range) const;
  const Coder* coder() const { return coder_ ? &*coder_ : nullptr; }

  std::span<float> parameters_;
  std::vector<std::span<float>> gradients_;  // by slot
  std::size_t used_later_from_;              // the first of them whose sums are used later
  UpdateRule rule_;
  OptimizerState state_;
  std::vector<Range> layers_;  // if updates are of whole layers
  float clip_factor_ = 1;      // of the updates that come next
  bool sparse_;
  bool gathered_;
  bool learner_packs_;
  bool learner_follows_;  // likewise, and the worker makes sparse updates
  bool pairs_;            // outer steps are of two workers
  std::optional<Coder> coder_;
  std::optional<FactorCoder> factors_;
  std::optional<LearnersFactors> learners_factors_;
  ChangeLog changed_;
  std::optional<OuterState> outer_;
};

}  // namespace sluice
