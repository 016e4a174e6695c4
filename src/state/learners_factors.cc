#include "state/learners_factors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice {

LearnersFactors::LearnersFactors(const Strategy& strategy, std::span<const Layer> layers,
                                 FindRight find)
    : find_(std::move(find)) {
  for (const Layer& layer : layers) {
    const Matrix& matrix = layer.matrix;
    if (strategy.factors(matrix)) {
      shapes_.try_emplace(matrix.begin, matrix.rows, matrix.columns, strategy.power_rank);
    }
  }
}

const LowRank& LearnersFactors::shape_of(const Work& work) const {
  const auto found = shapes_.find(work.range.begin);
  check(
      found != shapes_.end() && found->second.rows() * found->second.columns() == work.range.size(),
      "the range of a factor's work is a matrix");
  return found->second;
}

void LearnersFactors::find_right(std::span<const Work> works, std::span<float> gradients) const {
  std::vector<Range> matrices;
  for (const Work& work : works) {
    const LowRank& shape = shape_of(work);
    orthogonalise(gradients.subspan(static_cast<std::size_t>(work.range.begin),
                                    static_cast<std::size_t>(shape.left_size())),
                  shape.rank());
    matrices.push_back(work.range);
  }
  find_(matrices);
}

// There is room for it: both factors take less than half of the matrix.
void LearnersFactors::keep_right(const Work& work, std::span<float> gradient) const {
  const LowRank& shape = shape_of(work);
  const auto left = static_cast<std::size_t>(shape.left_size());
  const auto right = static_cast<std::size_t>(shape.right_size());
  const std::span<float> kept = gradient.subspan(left + right, right);
  std::ranges::copy(gradient.subspan(left, right), kept.begin());
  orthogonalise(kept, shape.rank());
}

}  // namespace sluice
