#include "support/whole_numbers.h"

namespace sluice::testing {

float WholeNumbers::gradient(std::int64_t index, std::size_t rank, Iteration iteration) {
  return static_cast<float>(
      (static_cast<std::size_t>(index) * 7 + rank * 3 + static_cast<std::size_t>(iteration)) % 101);
}

void WholeNumbers::Rounding::gradient_ready(LayerId layer) {
  const Range range = owner.layers()[layer.index()].range;
  for (auto i = range.begin; i < range.end; ++i) {
    owner.target_[static_cast<std::size_t>(i)] = gradient(i, owner.rank_, iteration);
  }
  inner.gradient_ready(layer);
}

std::vector<std::unique_ptr<Learner>> whole_numbers(const std::vector<std::int64_t>& params,
                                                    std::size_t workers) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < workers; ++w) {
    learners.push_back(std::make_unique<WholeNumbers>(params, w));
  }
  return learners;
}

}  // namespace sluice::testing
