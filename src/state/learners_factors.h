#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "codecs/low_rank.h"
#include "model/layer.h"
#include "model/strategy.h"
#include "protocol/work.h"

namespace sluice {

// What is left to do for the host where a learner makes the products of codec powersgd: see
// Learner::find_right_factors(). Factors become orthonormal here, on the host: by the same
// arithmetic on the same sums all workers get the same bits.
class LearnersFactors {
 public:
  using FindRight = std::function<void(std::span<const Range> matrices)>;  // as of the learner

  LearnersFactors(const Strategy& strategy, std::span<const Layer> layers, FindRight find);

  // Works kRightFactor, on different matrices; the gradients are those of the whole model. Waits
  // for the learner.
  void find_right(std::span<const Work> works, std::span<float> gradients) const;
  // Work kFromFactors, of whose range the gradient is.
  void keep_right(const Work& work, std::span<float> gradient) const;

 private:
  const LowRank& shape_of(const Work& work) const;

  FindRight find_;
  std::map<std::int64_t, LowRank> shapes_;  // by the begin of the matrix
};

}  // namespace sluice
