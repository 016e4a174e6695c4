#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codecs/low_rank.h"
#include "learners/learner.h"

namespace sluice::testing {

// What Learner::find_right_factors() promises, in plain loops, for all matrices of a worker. The
// spans are of its whole gradients, in the host's memory.
class ToyFactors {
 public:
  ToyFactors(const Strategy& strategy, std::size_t workers, std::span<const Layer> layers)
      : decay_(static_cast<float>(strategy.feedback_decay)),
        share_(1.0F / static_cast<float>(workers)) {
    for (const Layer& layer : layers) {
      if (const Matrix& matrix = layer.matrix; strategy.factors(matrix)) {
        const LowRank shape(matrix.rows, matrix.columns, strategy.power_rank);
        Factored& made = matrices_.emplace_back(Factored{matrix.range(), shape});
        made.residual.resize(static_cast<std::size_t>(matrix.range().size()));
        made.left.resize(static_cast<std::size_t>(shape.left_size()));
        made.start.resize(static_cast<std::size_t>(shape.right_size()));
        draw_right_factor(strategy.seed, matrix.begin, made.start);
        orthogonalise(made.start, shape.rank());
      }
    }
  }

  // The gradients of a layer make room for a left factor; what the host may not read is not a
  // number.
  void send(const Range& layer, std::span<float> gradients) {
    for_each_in(layer, gradients, [&](Factored& of, std::span<float> memory) {
      for (std::size_t i = 0; i < memory.size(); ++i) {
        of.residual[i] = decay_ * of.residual[i] + memory[i];
      }
      std::ranges::fill(memory, std::nanf(""));
      of.shape.multiply(of.residual, of.start, {0, of.shape.rows()}, memory.first(of.left.size()));
    });
  }
  void find_right(std::span<const Range> matrices, std::span<float> gradients) {
    for (const Range& matrix : matrices) {
      for_each_in(matrix, gradients, [&](Factored& of, std::span<float> memory) {
        std::ranges::copy(memory.first(of.left.size()), of.left.begin());
        of.shape.multiply_transposed(of.residual, of.left, {0, of.shape.columns()},
                                     memory.subspan(of.left.size(), of.start.size()));
      });
    }
  }
  void take_back(const Range& layer, std::span<float> gradients) {
    for_each_in(layer, gradients, [&](Factored& of, std::span<float> memory) {
      const std::span<float> right = memory.subspan(of.left.size(), of.start.size());
      const std::vector<float> sum(right.begin(), right.end());
      std::ranges::copy(memory.subspan(of.left.size() + sum.size(), sum.size()), of.start.begin());
      of.shape.restore(of.left, sum, {0, of.shape.rows()}, memory);
      for (std::size_t i = 0; i < memory.size(); ++i) {
        of.residual[i] -= share_ * memory[i];
      }
    });
  }

  // By matrix; first what its factors have lost.
  std::vector<std::span<float>> state() {
    std::vector<std::span<float>> all;
    for (Factored& of : matrices_) {
      all.insert(all.end(), {of.residual, of.start});
    }
    return all;
  }

 private:
  struct Factored {
    Range range;
    LowRank shape;
    std::vector<float> residual = {};
    std::vector<float> left = {};
    std::vector<float> start = {};
  };

  template <class Take>
  void for_each_in(const Range& range, std::span<float> gradients, Take take) {
    for (Factored& of : matrices_) {
      if (of.range.begin >= range.begin && of.range.end <= range.end) {
        take(of, gradients.subspan(static_cast<std::size_t>(of.range.begin),
                                   static_cast<std::size_t>(of.range.size())));
      }
    }
  }

  float decay_;
  float share_;
  std::vector<Factored> matrices_;
};

}  // namespace sluice::testing
