#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "codecs/dense.h"
#include "learners/learner.h"
#include "optimizers/optimizer_state.h"

namespace sluice::testing {

// A learner without LibTorch. Each gradient depends on the parameters, the rank and the iteration,
// so that a value of the wrong iteration, rank or position shows in the result.
class ToyLearner final : public Learner {
 public:
  ToyLearner(const std::vector<std::int64_t>& params, std::size_t rank) : rank_(rank) {
    std::vector<std::string> names;
    for (std::size_t l = 0; l < params.size(); ++l) {
      names.push_back("L" + std::to_string(l));
    }
    layers_ = lay_out(names, params);
    const auto total = static_cast<std::size_t>(total_params(layers_));
    gradients_.assign(total, 0.0F);
    target_ = gradients_;
    Random random(7);
    for (std::size_t i = 0; i < total; ++i) {
      parameters_.push_back(static_cast<float>(random.uniform() - 0.5));
    }
  }

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return target_; }
  void gradients_into(std::span<float> buffer) override { target_ = buffer; }

  static float gradient(float parameter, std::size_t index, std::size_t rank, Iteration iteration) {
    const std::uint64_t key =
        mix(mix(index) ^ (rank * 1000003ULL) ^ (static_cast<std::uint64_t>(iteration) << 32U));
    return parameter * 0.3F + static_cast<float>(key >> 40U) * 0x1.0p-24F - 0.5F;
  }

  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    double norm = 0;
    std::vector<float> seen(parameters_.size());
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      hooks.before_layer(LayerId(l));
      unpack(layers_[l].range);
      update(l, iteration);
      take_over(l, iteration);
      for_each(l, [&](std::size_t i) {
        seen[i] = turns_ ? replica_[i] : parameters_[i];
        norm += std::abs(static_cast<double>(seen[i]));
      });
    }
    hooks.forward_done();
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const std::span<float> into = turns_ ? gradients_ : target_;
      for_each(l, [&](std::size_t i) { into[i] = gradient(seen[i], i, rank_, iteration); });
      take_local_step(l, iteration + 1);
      pack(layers_[l].range);
      hooks.gradient_ready(LayerId(l));
    }
    update_is_due_ = rule_.has_value() && !turns_;
    stepped_ = true;
    return norm;
  }

  void update_with(const UpdateRule& rule, const BatchShare& share) override {
    rule_ = rule;
    share_ = share;
    state_.emplace(rule, parameters_.size());
  }
  void pack_with(Codec codec, const ChunkMap& chunks) override {
    codec_ = make_dense_codec(codec);
    for (const Chunk& chunk : chunks.all()) {
      chunks_.push_back(chunk.range);
    }
  }
  // Then parameters() stands for the host's and a replica of its own for the device's; what the
  // host may not read is not a number.
  void step_locally(const UpdateRule& rule, LayerTurns turns) override {
    update_with(rule, BatchShare{});
    turns_.emplace(std::move(turns));
    replica_.assign(parameters_.size(), std::nanf(""));
    gradients_.assign(parameters_.size(), 0.0F);
  }
  void settle(Iteration iteration) override {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      unpack(layers_[l].range);
      update(l, iteration);
      take_over(l, iteration);
    }
    if (turns_) {
      parameters_ = replica_;
    }
    update_is_due_ = false;
    stepped_ = false;
  }

  std::vector<TensorCopy> remembered() override {
    std::vector<TensorCopy> copies;
    for (const auto& [name, values] : buffers()) {
      const auto bytes = std::as_bytes(values);
      copies.push_back({name,
                        ElementType::kFloat32,
                        {static_cast<std::int64_t>(values.size())},
                        {bytes.begin(), bytes.end()}});
    }
    return copies;
  }
  Result<void> recall(std::span<const StoredTensor> saved) override {
    const auto own = buffers();
    check(saved.size() == own.size(), "a toy has as many buffers as were saved");
    for (std::size_t b = 0; b < own.size(); ++b) {
      check(saved[b].name == own[b].first, "a toy has the buffers that were saved");
      std::ranges::copy(saved[b].bytes, std::as_writable_bytes(own[b].second).begin());
    }
    return {};
  }

  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  void update(std::size_t layer, Iteration iteration) {
    if (update_is_due_) {
      const auto begin = static_cast<std::size_t>(layers_[layer].range.begin);
      const auto size = static_cast<std::size_t>(layers_[layer].range.size());
      const std::span<const float> sum = target_.subspan(begin, size);
      rule_->apply(parameters().subspan(begin, size), state_->part(layers_[layer].range), {&sum, 1},
                   share_, iteration);
    }
  }

  // Chunks are packed with the first of their layers, which is the last in the backward pass, and
  // unpacked with it.
  void pack(const Range& layer) {
    for_each_chunk_in(layer, [&](std::span<float> values) {
      std::vector<std::byte> code(
          static_cast<std::size_t>(codec_->encoded_size(std::ssize(values))));
      codec_->encode(values, code);
      std::ranges::fill(values, std::nanf(""));
      std::ranges::copy(code, std::as_writable_bytes(values).begin());
    });
  }
  void unpack(const Range& layer) {
    if (update_is_due_) {
      for_each_chunk_in(layer, [&](std::span<float> values) {
        const auto size = static_cast<std::size_t>(codec_->encoded_size(std::ssize(values)));
        const auto memory = std::as_bytes(values).first(size);
        const std::vector<std::byte> code(memory.begin(), memory.end());
        codec_->decode(code, values);
      });
    }
  }
  template <class Take>
  void for_each_chunk_in(const Range& layer, Take take) {
    for (const Range& chunk : chunks_) {
      if (chunk.begin >= layer.begin && chunk.begin < layer.end) {
        take(target_.subspan(static_cast<std::size_t>(chunk.begin),
                             static_cast<std::size_t>(chunk.size())));
      }
    }
  }

  void take_over(std::size_t layer, Iteration iteration) {
    if (turns_ && (!stepped_ || turns_->ends_at(LayerId(layer), iteration))) {
      for_each(layer, [&](std::size_t i) { replica_[i] = parameters_[i]; });
    }
  }

  void take_local_step(std::size_t layer, Iteration iteration) {
    if (!turns_) {
      return;
    }
    const auto begin = static_cast<std::size_t>(layers_[layer].range.begin);
    const auto size = static_cast<std::size_t>(layers_[layer].range.size());
    const std::span<const float> gradient = std::span(gradients_).subspan(begin, size);
    rule_->apply(std::span(replica_).subspan(begin, size), state_->part(layers_[layer].range),
                 {&gradient, 1}, share_, iteration);
    const bool meets = turns_->meets_at(LayerId(layer), iteration);
    for_each(layer, [&](std::size_t i) { parameters_[i] = meets ? replica_[i] : std::nanf(""); });
  }

  // Of its own updates.
  std::vector<std::pair<std::string, std::span<float>>> buffers() const {
    std::vector<std::pair<std::string, std::span<float>>> all;
    if (state_) {
      for (const auto& [name, values] : state_->buffers()) {
        all.emplace_back(name, values.values());
      }
    }
    return all;
  }

  template <class F>
  void for_each(std::size_t layer, F f) {
    const Range range = layers_[layer].range;
    for (auto i = range.begin; i < range.end; ++i) {
      f(static_cast<std::size_t>(i));
    }
  }

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
  std::vector<Range> chunks_;          // likewise
  std::optional<LayerTurns> turns_;    // if local steps are left to it
  std::vector<float> replica_;         // likewise
  bool stepped_ = false;               // since it was settled
};

inline std::vector<std::unique_ptr<Learner>> toy_learners(const std::vector<std::int64_t>& params,
                                                          std::size_t workers) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < workers; ++w) {
    learners.push_back(std::make_unique<ToyLearner>(params, w));
  }
  return learners;
}

}  // namespace sluice::testing
