// Codec dgc by LibTorch's operators: what is sent and kept is what the paper says, whatever is
// chosen between values that are equal.
#include "torch/device_selection.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "codecs/sparse.h"
#include "torch/flat_parameters.h"

namespace sluice {
namespace {

constexpr double kLastBits = 1e-4;

struct Selecting {
  DeepGradientOptions options;
  DeepGradientSender sender;
  std::vector<Range> layers;
  std::vector<Range> chunks;
  at::Tensor gradients;
  at::Tensor parameters;
  at::Tensor latest;
  DeviceSelection selection;
};

std::vector<Range> in_row(const std::vector<std::int64_t>& lengths) {
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    ranges.push_back({begin, begin + length});
    begin += length;
  }
  return ranges;
}

at::Tensor some_values(std::int64_t count) {
  at::Tensor values = at::zeros({count}, at::kFloat);
  for (float& value : span_of(values)) {
    value = static_cast<float>(*rc::gen::inRange(-1000, 1001)) * 1e-3F;
  }
  return values;
}

Selecting any_selecting() {
  DeepGradientOptions options;
  options.accumulation = *rc::gen::arbitrary<bool>();
  options.momentum_correction = *rc::gen::arbitrary<bool>();
  options.clipping = *rc::gen::arbitrary<bool>();
  options.factor_masking = *rc::gen::arbitrary<bool>();
  options.sparsity = *rc::gen::element(0.6, 0.9);  // or a code has no room
  options.clip_norm = *rc::gen::element(0.1, 1000.0);
  options.epoch_iterations = *rc::gen::element<Iteration>(0, 1);
  const DeepGradientSender sender{.senders = *rc::gen::inRange<std::size_t>(1, 5),
                                  .momentum = 0.9F,
                                  .weight_decay = *rc::gen::element(0.0F, 0.01F)};
  // Two layers, whose border is none of the chunks.
  const std::vector<Range> chunks =
      in_row(*rc::gen::elementOf(std::vector<std::vector<std::int64_t>>{
          {40, 40, 40, 7}, {3, 100, 100}, {64}, {5, 5, 90, 90, 90}}));
  const std::int64_t count = chunks.back().end;
  const std::vector<Range> layers{{0, count / 3}, {count / 3, count}};
  const at::Tensor gradients = at::zeros({count}, at::kFloat);
  const at::Tensor parameters = some_values(count);
  const at::Tensor latest = some_values(count);
  return {options,   sender,     layers, chunks,
          gradients, parameters, latest, {options, sender, chunks, gradients, parameters, latest}};
}

// The paper's algorithm in double precision, told what was sent.
struct DgcReference {
  std::vector<double> velocity;
  std::vector<double> residual;

  void take_in(const Selecting& of, const Range& layer) {
    const auto gradients = span_of(of.gradients);
    double squares = 0;
    for (std::int64_t i = layer.begin; i < layer.end; ++i) {
      const double g = gradients[static_cast<std::size_t>(i)];
      squares += g * g;
    }
    const double limit = of.options.clip_norm * std::sqrt(static_cast<double>(of.sender.senders));
    const double clip =
        of.options.clipping && std::sqrt(squares) > limit ? limit / std::sqrt(squares) : 1;
    for (std::int64_t at = layer.begin; at < layer.end; ++at) {
      const auto i = static_cast<std::size_t>(at);
      const double g = clip * gradients[i] + of.sender.weight_decay * span_of(of.parameters)[i];
      velocity[i] = of.options.momentum_correction ? of.sender.momentum * velocity[i] + g : g;
      residual[i] = of.options.accumulation ? residual[i] + velocity[i] : velocity[i];
    }
  }
};

std::span<float> values_at(const at::Tensor& flat, const Range& range) {
  return span_of(flat).subspan(static_cast<std::size_t>(range.begin),
                               static_cast<std::size_t>(range.size()));
}

Result<SparseView> code_at(const at::Tensor& host, const Range& chunk) {
  const auto memory = std::as_bytes(values_at(host, chunk));
  const auto entries = load<std::uint32_t>(memory.data(), 0);
  return SparseView::parse(memory.first(static_cast<std::size_t>(sparse_size(entries))),
                           chunk.size());
}

void check_code(const Selecting& of, const at::Tensor& host, std::size_t chunk, Iteration iteration,
                DgcReference& paper) {
  const Range range = of.chunks[chunk];
  const auto sparse = code_at(host, range);
  RC_ASSERT(static_cast<bool>(sparse));
  RC_ASSERT(sparse->entries() ==
            of.options.entries(static_cast<std::size_t>(range.size()), iteration));
  double least_sent = HUGE_VAL;
  for (std::size_t e = 0; e < sparse->entries(); ++e) {
    const auto i = static_cast<std::size_t>(range.begin) + sparse->position(e);
    RC_ASSERT(std::abs(sparse->value(e) - paper.residual[i]) < kLastBits);
    least_sent = std::min(least_sent, std::abs(paper.residual[i]));
    paper.residual[i] = 0;
    paper.velocity[i] = of.options.factor_masking ? 0 : paper.velocity[i];
  }
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    RC_ASSERT(std::abs(paper.residual[static_cast<std::size_t>(i)]) <= least_sent + kLastBits);
  }
}

std::vector<std::size_t> numbers(std::size_t first, std::size_t end) {
  std::vector<std::size_t> all(end - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

RC_GTEST_PROP(DeviceSelectionTest, SendsAndKeepsWhatThePaperSays, ()) {
  Selecting of = any_selecting();
  const auto count = span_of(of.gradients).size();
  DgcReference paper{std::vector<double>(count), std::vector<double>(count)};
  for (Iteration iteration = 1; iteration <= 4; ++iteration) {
    of.gradients.copy_(some_values(std::ssize(span_of(of.gradients))));
    for (const Range& layer : of.layers) {
      paper.take_in(of, layer);
    }
    // All at once, or layer by layer with the chunks that end there.
    const at::Tensor host = at::zeros_like(of.gradients);
    std::size_t sent = 0;
    if (*rc::gen::arbitrary<bool>()) {
      while (sent < of.chunks.size() && of.chunks[sent].end <= of.layers[0].end) {
        ++sent;
      }
      of.selection.send({of.layers.data(), 1}, numbers(0, sent), host, iteration);
      of.selection.send({of.layers.data() + 1, 1}, numbers(sent, of.chunks.size()), host,
                        iteration);
      of.selection.deliver(host);
    } else {
      of.selection.send(of.layers, numbers(0, of.chunks.size()), host, iteration);
    }
    of.selection.deliver(host);
    for (std::size_t c = 0; c < of.chunks.size(); ++c) {
      check_code(of, host, c, iteration, paper);
    }
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(std::abs(span_of(of.selection.state()[0])[i] - paper.velocity[i]) < kLastBits);
      RC_ASSERT(std::abs(span_of(of.selection.state()[1])[i] - paper.residual[i]) < kLastBits);
    }
  }
}

RC_GTEST_PROP(DeviceSelectionTest, TakesBackWhatHasChanged, ()) {
  Selecting of = any_selecting();
  const at::Tensor host = at::zeros_like(of.gradients);
  const std::vector<float> before(span_of(of.parameters).begin(), span_of(of.parameters).end());
  std::vector<float> expected = before;
  for (const Range& chunk : of.chunks) {
    const auto begin = static_cast<std::size_t>(chunk.begin);
    const auto size = static_cast<std::size_t>(chunk.size());
    const auto latest = values_at(of.latest, chunk);
    const auto memory = std::as_writable_bytes(values_at(host, chunk));
    std::vector<std::uint32_t> positions;
    if (*rc::gen::arbitrary<bool>() || size < 3) {
      store(memory.data(), 0, kAllChanged);
      std::ranges::copy(latest, expected.begin() + chunk.begin);
      continue;
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      if (sparse_size(std::ssize(positions) + 1) <= std::ssize(memory) &&
          *rc::gen::arbitrary<bool>()) {
        positions.push_back(i);
        expected[begin + i] = latest[i];
      }
    }
    std::ranges::copy(encode_sparse(latest, positions), memory.begin());
  }
  of.selection.take_back(0, of.chunks.size(), host);
  RC_ASSERT(std::ranges::equal(span_of(of.parameters), expected));
}

TEST(DeviceSelectionTest, WhatIsNotANumberIsSent) {
  const at::Tensor gradients = at::zeros({100}, at::kFloat);
  span_of(gradients)[42] = std::nanf("");
  span_of(gradients)[7] = 5;
  DeviceSelection selection({.sparsity = 0.99}, {}, {{0, 100}}, gradients, gradients.clone(),
                            gradients.clone());
  const std::vector<Range> layers{{0, 10}, {10, 100}};
  const at::Tensor host = at::zeros_like(gradients);
  selection.send(layers, numbers(0, 1), host, 1);
  selection.deliver(host);
  const auto sparse = code_at(host, {0, 100});
  ASSERT_EQ(sparse->entries(), 1U);
  EXPECT_EQ(sparse->position(0), 42U);
  EXPECT_TRUE(selection.is_finite(layers[0]));
  EXPECT_FALSE(selection.is_finite(layers[1]));
}

}  // namespace
}  // namespace sluice
