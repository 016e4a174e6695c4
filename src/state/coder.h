#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/zeroed_buffer.h"
#include "codecs/block_top_k.h"
#include "codecs/deep_gradient.h"
#include "codecs/dense.h"
#include "model/strategy.h"
#include "model/topology.h"
#include "optimizers/update_rule.h"
#include "state/remembered.h"
#include "state/work_in_parts.h"

namespace sluice {

// Who packs gradients with codec dgc, in a run with this rule.
DeepGradientSender sender_of(const Strategy& strategy, const Topology& topology,
                             const UpdateRule& rule);

// Packs and unpacks the gradients of one node with the strategy's codec, and keeps what packing
// leaves out. Its state is indexed like the parameters, so that several threads may work on
// different ranges at a time, except where a method says otherwise.
class Coder {
 public:
  // The layers must tile all parameters.
  Coder(const Strategy& strategy, const DeepGradientSender& sender, std::vector<Range> layers,
        std::size_t parameters);

  // Packing with a dense codec, part by part; `values` covers the range of the work. After a pass
  // over all parts, more_packing() is true if there is another; after the last the code is there.
  void begin_packing(WorkInParts& doing) const;
  void pack(WorkInParts& doing, std::size_t part, std::span<float> values);
  bool more_packing(WorkInParts& doing) const;

  // With a sparse codec; the spans cover the whole model. Before that, one work of the node at a
  // time has to prepare().
  void prepare(WorkInParts& doing, std::span<const float> gradients);
  std::vector<std::byte> select(const WorkInParts& doing, std::span<const float> gradients,
                                std::span<const float> parameters);

  // With a gathered codec. Several codes of the same range may stand one after the other.
  std::vector<std::byte> take(const Work& work, std::span<const float> values);
  // sum <- what the codes say, in their order
  void add_up(std::span<const std::byte> codes, std::span<float> sum) const;

  // Algorithm local-steps: an exchange of this range begins. If its sum is given up, what packing
  // has kept back since then is put back, and kept back again by the next one.
  void begin_exchange(const Range& range);
  void give_up_exchange(const Range& range);

  // Fails unless these bytes are the code of so long a range.
  void check_size(std::span<const std::byte> bytes, const Range& range) const;
  // Unpacks the values from `first` on, a multiple of DenseCodec::kCut.
  void read(std::span<const std::byte> bytes, std::size_t first, std::span<float> values) const;
  // sum += the same
  void add(std::span<const std::byte> bytes, std::size_t first, std::span<float> sum) const;

  // All of its state.
  std::vector<Remembered> remembered() const {
    return {{"residual", {residual_.values()}},
            {"dgc.residual", {deep_.residual()}},
            {"dgc.velocity", {deep_.velocity()}}};
  }

 private:
  std::span<float> residual_of(const Range& range) const { return part(residual_, range); }
  static std::span<float> part(const ZeroedBuffer& buffer, const Range& range);

  std::unique_ptr<DenseCodec> dense_;  // null if the codec is another
  DeepGradient deep_;
  BlockTopK blocks_;
  ZeroedBuffer residual_;
  ZeroedBuffer before_;  // the residual when the exchanges began; empty if no sum is given up
  float decay_;          // of the residual
};

}  // namespace sluice
