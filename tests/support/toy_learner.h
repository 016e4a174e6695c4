#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codecs/deep_gradient.h"
#include "codecs/dense.h"
#include "learners/learner.h"
#include "optimizers/optimizer_state.h"
#include "support/toy_factors.h"

namespace sluice::testing {

// A learner without LibTorch. Each gradient depends on the parameters, the rank and the iteration,
// so that a value of the wrong iteration, rank or position shows in the result.
class ToyLearner final : public Learner {
 public:
  ToyLearner(const std::vector<std::int64_t>& params, std::size_t rank);

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return target_; }
  void gradients_into(std::span<float> buffer) override { target_ = buffer; }

  static float gradient(float parameter, std::size_t index, std::size_t rank, Iteration iteration);

  std::optional<double> step(Iteration iteration, StepHooks& hooks) override;
  void update_with(const UpdateRule& rule, const BatchShare& share) override;
  // With a sparse codec, as step_locally().
  void pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                 const ChunkMap& chunks) override;
  void find_right_factors(std::span<const Range> matrices) override;
  // Then parameters() stands for the host's and a replica of its own for the device's; what the
  // host may not read is not a number.
  void step_locally(const UpdateRule& rule, LayerTurns turns) override;
  void settle(Iteration iteration) override;

  std::vector<TensorCopy> remembered() override;
  Result<void> recall(std::span<const StoredTensor> saved) override;
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  void make_replica();
  void bring(std::size_t layer, Iteration iteration);
  void update(std::size_t layer, Iteration iteration);

  // Chunks are packed with the first of their layers, which is the last in the backward pass, and
  // unpacked with it.
  void pack(const Range& layer, Iteration iteration);
  std::vector<std::byte> dense_code(const Range& chunk, std::span<float> values);
  void unpack(const Range& layer);
  template <class Take>
  void for_each_chunk_in(const Range& layer, Take take);
  void take_patches(const Range& layer);
  void take_over(std::size_t layer, Iteration iteration);
  void take_local_step(std::size_t layer, Iteration iteration);

  // Of its own updates.
  std::vector<std::pair<std::string, std::span<float>>> buffers();

  template <class F>
  void for_each(std::size_t layer, F f);

  std::size_t rank_;
  std::vector<Layer> layers_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::span<float> target_;         // where to write gradients
  std::optional<UpdateRule> rule_;  // if updates are left to it
  BatchShare share_;
  std::optional<OptimizerState> state_;
  bool update_is_due_ = false;
  std::unique_ptr<DenseCodec> codec_;  // if packing is left to it
  bool feedback_ = false;
  float decay_ = 1;
  std::vector<float> residual_;
  std::optional<ToyFactors> factors_;      // if making factors is left to it
  std::optional<DeepGradient> selection_;  // if packing with codec dgc is
  std::vector<Range> chunks_;              // to be packed
  std::optional<LayerTurns> turns_;        // if local steps are left to it
  std::vector<float> replica_;             // of the parameters, if it follows them on its own
  std::vector<float> own_;                 // gradients, likewise
  bool stepped_ = false;                   // since it was settled
};

std::vector<std::unique_ptr<Learner>> toy_learners(const std::vector<std::int64_t>& params,
                                                   std::size_t workers);

}  // namespace sluice::testing
