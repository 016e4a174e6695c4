#include "support/toy_learner.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "codecs/error_feedback.h"
#include "codecs/sparse.h"
#include "support/matrices.h"

namespace sluice::testing {

ToyLearner::ToyLearner(const std::vector<std::int64_t>& params, std::size_t rank) : rank_(rank) {
  std::vector<std::string> names;
  for (std::size_t l = 0; l < params.size(); ++l) {
    names.push_back("L" + std::to_string(l));
  }
  layers_ = with_matrices(lay_out(names, params));
  const auto total = static_cast<std::size_t>(total_params(layers_));
  gradients_.assign(total, 0.0F);
  target_ = gradients_;
  Random random(7);
  for (std::size_t i = 0; i < total; ++i) {
    parameters_.push_back(static_cast<float>(random.uniform() - 0.5));
  }
}

float ToyLearner::gradient(float parameter, std::size_t index, std::size_t rank,
                           Iteration iteration) {
  const std::uint64_t key =
      mix(mix(index) ^ (rank * 1000003ULL) ^ (static_cast<std::uint64_t>(iteration) << 32U));
  return parameter * 0.3F + static_cast<float>(key >> 40U) * 0x1.0p-24F - 0.5F;
}

template <class F>
void ToyLearner::for_each(std::size_t layer, F f) {
  const Range range = layers_[layer].range;
  for (auto i = range.begin; i < range.end; ++i) {
    f(static_cast<std::size_t>(i));
  }
}

template <class Take>
void ToyLearner::for_each_chunk_in(const Range& layer, Take take) {
  for (const Range& chunk : chunks_) {
    if (chunk.begin >= layer.begin && chunk.begin < layer.end) {
      take(chunk, target_.subspan(static_cast<std::size_t>(chunk.begin),
                                  static_cast<std::size_t>(chunk.size())));
    }
  }
}

std::optional<double> ToyLearner::step(Iteration iteration, StepHooks& hooks) {
  double norm = 0;
  std::vector<float> seen(parameters_.size());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    hooks.before_layer(LayerId(l));
    bring(l, iteration);
    for_each(l, [&](std::size_t i) {
      seen[i] = replica_.empty() ? parameters_[i] : replica_[i];
      norm += std::abs(static_cast<double>(seen[i]));
    });
  }
  hooks.forward_done();
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const std::span<float> into = replica_.empty() ? target_ : std::span(own_);
    for_each(l, [&](std::size_t i) { into[i] = gradient(seen[i], i, rank_, iteration); });
    take_local_step(l, iteration + 1);
    pack(layers_[l].range, iteration + 1);
    hooks.gradient_ready(LayerId(l));
  }
  update_is_due_ = rule_.has_value() && !turns_;
  stepped_ = true;
  return norm;
}

void ToyLearner::update_with(const UpdateRule& rule, const BatchShare& share) {
  rule_ = rule;
  share_ = share;
  state_.emplace(rule, parameters_.size());
}

void ToyLearner::pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                           const ChunkMap& chunks) {
  if (strategy.factored()) {
    factors_.emplace(strategy, sender.senders, layers_);
    return;
  }
  for (const Chunk& chunk : chunks.all()) {
    chunks_.push_back(chunk.range);
  }
  if (!strategy.sparse()) {
    codec_ = make_dense_codec(strategy.codec);
    feedback_ = strategy.error_feedback;
    decay_ = static_cast<float>(strategy.feedback_decay);
    residual_.assign(parameters_.size(), 0.0F);
    return;
  }
  std::vector<Range> ranges;
  for (const Layer& layer : layers_) {
    ranges.push_back(layer.range);
  }
  selection_.emplace(strategy.dgc, sender, std::move(ranges));
  make_replica();
}

void ToyLearner::find_right_factors(std::span<const Range> matrices) {
  factors_.value().find_right(matrices, target_);
}

void ToyLearner::step_locally(const UpdateRule& rule, LayerTurns turns) {
  update_with(rule, BatchShare{});
  turns_.emplace(std::move(turns));
  make_replica();
}

void ToyLearner::settle(Iteration iteration) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    bring(l, iteration);
  }
  if (!replica_.empty()) {
    parameters_ = replica_;
  }
  update_is_due_ = false;
  stepped_ = false;
}

std::vector<TensorCopy> ToyLearner::remembered() {
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

Result<void> ToyLearner::recall(std::span<const StoredTensor> saved) {
  const auto own = buffers();
  check(saved.size() == own.size(), "a toy has as many buffers as were saved");
  for (std::size_t b = 0; b < own.size(); ++b) {
    check(saved[b].name == own[b].first, "a toy has the buffers that were saved");
    std::ranges::copy(saved[b].bytes, std::as_writable_bytes(own[b].second).begin());
  }
  return {};
}

void ToyLearner::make_replica() {
  replica_.assign(parameters_.size(), std::nanf(""));
  own_.assign(parameters_.size(), 0.0F);
}

void ToyLearner::bring(std::size_t layer, Iteration iteration) {
  unpack(layers_[layer].range);
  update(layer, iteration);
  take_over(layer, iteration);
  take_patches(layers_[layer].range);
}

void ToyLearner::update(std::size_t layer, Iteration iteration) {
  if (update_is_due_) {
    const auto begin = static_cast<std::size_t>(layers_[layer].range.begin);
    const auto size = static_cast<std::size_t>(layers_[layer].range.size());
    const std::span<const float> sum = target_.subspan(begin, size);
    rule_->apply(parameters().subspan(begin, size), state_->part(layers_[layer].range), {&sum, 1},
                 share_, iteration);
  }
}

void ToyLearner::pack(const Range& layer, Iteration iteration) {
  if (factors_) {
    return factors_->send(layer, target_);
  }
  for_each_chunk_in(layer, [&](const Range& chunk, std::span<float> values) {
    const std::vector<std::byte> code = selection_
                                            ? selection_->encode(own_, replica_, chunk, iteration)
                                            : dense_code(chunk, values);
    std::ranges::fill(values, std::nanf(""));
    std::ranges::copy(code, std::as_writable_bytes(values).begin());
  });
}

std::vector<std::byte> ToyLearner::dense_code(const Range& chunk, std::span<float> values) {
  std::vector<std::byte> code(static_cast<std::size_t>(codec_->encoded_size(std::ssize(values))));
  const ErrorFeedback corrected(
      *codec_, std::span(residual_).subspan(static_cast<std::size_t>(chunk.begin), values.size()),
      decay_);
  feedback_ ? corrected.encode(values, code) : codec_->encode(values, code);
  return code;
}

void ToyLearner::unpack(const Range& layer) {
  if (update_is_due_ && factors_) {
    factors_->take_back(layer, target_);
  } else if (update_is_due_) {
    for_each_chunk_in(layer, [&](const Range& /*chunk*/, std::span<float> values) {
      const auto size = static_cast<std::size_t>(codec_->encoded_size(std::ssize(values)));
      const auto memory = std::as_bytes(values).first(size);
      const std::vector<std::byte> code(memory.begin(), memory.end());
      codec_->decode(code, values);
    });
  }
}

void ToyLearner::take_patches(const Range& layer) {
  if (!selection_ || !stepped_) {
    return;
  }
  for_each_chunk_in(layer, [&](const Range& chunk, std::span<float> values) {
    const auto begin = static_cast<std::size_t>(chunk.begin);
    const auto memory = std::as_bytes(values);
    const auto entries = load<std::uint32_t>(memory.data(), 0);
    if (entries == kAllChanged) {
      std::copy_n(parameters_.begin() + chunk.begin, chunk.size(), replica_.begin() + chunk.begin);
      return;
    }
    const auto code = memory.first(static_cast<std::size_t>(sparse_size(entries)));
    const auto patch = SparseView::parse(code, chunk.size());
    for (std::size_t e = 0; e < patch->entries(); ++e) {
      replica_[begin + patch->position(e)] = patch->value(e);
    }
  });
}

void ToyLearner::take_over(std::size_t layer, Iteration iteration) {
  if (selection_ && !stepped_) {
    for_each(layer, [&](std::size_t i) { replica_[i] = parameters_[i]; });
  }
  if (turns_ && (!stepped_ || turns_->ends_at(LayerId(layer), iteration))) {
    for_each(layer, [&](std::size_t i) { replica_[i] = parameters_[i]; });
  }
}

void ToyLearner::take_local_step(std::size_t layer, Iteration iteration) {
  if (!turns_) {
    return;
  }
  const auto begin = static_cast<std::size_t>(layers_[layer].range.begin);
  const auto size = static_cast<std::size_t>(layers_[layer].range.size());
  const std::span<const float> gradient = std::span(own_).subspan(begin, size);
  rule_->apply(std::span(replica_).subspan(begin, size), state_->part(layers_[layer].range),
               {&gradient, 1}, share_, iteration);
  const bool meets = turns_->meets_at(LayerId(layer), iteration);
  for_each(layer, [&](std::size_t i) { parameters_[i] = meets ? replica_[i] : std::nanf(""); });
}

std::vector<std::pair<std::string, std::span<float>>> ToyLearner::buffers() {
  std::vector<std::pair<std::string, std::span<float>>> all;
  for (const std::span<float> kept :
       factors_ ? factors_->state() : std::vector<std::span<float>>()) {
    all.emplace_back(std::to_string(all.size()), kept);
  }
  if (state_) {
    for (const auto& [name, values] : state_->buffers()) {
      all.emplace_back(name, values.values());
    }
  }
  return all;
}

std::vector<std::unique_ptr<Learner>> toy_learners(const std::vector<std::int64_t>& params,
                                                   std::size_t workers) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < workers; ++w) {
    learners.push_back(std::make_unique<ToyLearner>(params, w));
  }
  return learners;
}

}  // namespace sluice::testing
