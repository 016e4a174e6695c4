#include "state/factor_coder.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

// Parts begin at multiples of so many columns: whole lines of the cache.
constexpr std::int64_t kColumns = 16;
// The last pass over the parts of a work; the first and the last are one copy, or little more.
constexpr int kLastPassOfLeft = 2;
constexpr int kLastPass = 1;

std::vector<Matrix> factored_in(std::span<const Layer> layers, const Strategy& strategy) {
  std::vector<Matrix> matrices;
  for (const Layer& layer : layers) {
    if (strategy.factors(layer.matrix)) {
      matrices.push_back(layer.matrix);
    }
  }
  return matrices;
}

template <class Size>
std::size_t sum_over(std::span<const Layer> layers, const Strategy& strategy, Size size) {
  std::int64_t sum = 0;
  for (const Matrix& matrix : factored_in(layers, strategy)) {
    sum += size(matrix);
  }
  return static_cast<std::size_t>(sum);
}

}  // namespace

FactorCoder::FactorCoder(const Strategy& strategy, std::span<const Layer> layers)
    : decay_(static_cast<float>(strategy.feedback_decay)),
      residuals_(sum_over(layers, strategy, [](const Matrix& m) { return m.range().size(); })),
      lefts_(sum_over(layers, strategy,
                      [&](const Matrix& m) { return m.rows * strategy.power_rank; })),
      rights_(sum_over(layers, strategy,
                       [&](const Matrix& m) { return m.columns * strategy.power_rank; })) {
  std::span<float> residuals = residuals_.values();
  std::span<float> lefts = lefts_.values();
  std::span<float> rights = rights_.values();
  const auto take = [](std::span<float>& from, std::int64_t size) {
    const std::span<float> taken = from.first(static_cast<std::size_t>(size));
    from = from.subspan(taken.size());
    return taken;
  };
  for (const Matrix& matrix : factored_in(layers, strategy)) {
    const LowRank shape(matrix.rows, matrix.columns, strategy.power_rank);
    matrices_.push_back({matrix.begin, shape, take(residuals, matrix.range().size()),
                         take(lefts, shape.left_size()), take(rights, shape.right_size())});
    draw_right_factor(strategy.seed, matrix.begin, matrices_.back().right);
  }
}

const FactorCoder::Factored& FactorCoder::matrix_of(const Work& work) const {
  const auto found = std::ranges::lower_bound(matrices_, work.range.begin, {}, &Factored::begin);
  check(found != matrices_.end() && found->begin == work.range.begin &&
            std::ssize(found->residual) == work.range.size(),
        "the range of a factor's work is a matrix");
  return *found;
}

std::vector<Range> FactorCoder::cut(const Work& work, std::int64_t parts) const {
  const LowRank& shape = matrix_of(work).shape;
  const bool by_column = work.kind == WorkKind::kRightFactor;
  const std::int64_t unit = by_column ? kColumns : 1;
  const std::int64_t all = by_column ? shape.columns() : shape.rows();
  const Range units{0, (all + unit - 1) / unit};
  const std::int64_t count = std::clamp<std::int64_t>(units.size(), 1, parts);
  std::vector<Range> ranges;
  for (std::int64_t p = 0; p < count; ++p) {
    const Range part = part_of(units, count, p);
    ranges.push_back({std::min(part.begin * unit, all), std::min(part.end * unit, all)});
  }
  return ranges;
}

void FactorCoder::do_part(const WorkInParts& doing, std::size_t part, std::span<float> gradient) {
  const Factored& matrix = matrix_of(doing.work);
  const std::span<float> left = gradient.first(matrix.left.size());
  const std::span<float> right = gradient.subspan(left.size(), matrix.right.size());
  if (doing.pass != 1) {
    // What cannot be cut, or is not worth it.
    if (part > 0) {
      return;
    }
    if (doing.pass == kLastPassOfLeft) {
      std::ranges::copy(matrix.left, left.begin());
    } else if (doing.work.kind == WorkKind::kLeftFactor) {
      orthogonalise(matrix.right, matrix.shape.rank());
    } else if (doing.work.kind == WorkKind::kRightFactor) {
      std::ranges::copy(left, matrix.left.begin());
      orthogonalise(matrix.left, matrix.shape.rank());
    } else {
      std::ranges::copy(right, matrix.right.begin());
    }
    return;
  }
  const Range& range = doing.parts[part];
  if (doing.work.kind == WorkKind::kLeftFactor) {
    find_left(matrix, range, gradient);
  } else if (doing.work.kind == WorkKind::kRightFactor) {
    matrix.shape.multiply_transposed(matrix.residual, matrix.left, range, right);
  } else {
    restore(matrix, range, doing.work.workers, gradient);
  }
}

bool FactorCoder::more(WorkInParts& doing) {
  const int last = doing.work.kind == WorkKind::kLeftFactor ? kLastPassOfLeft : kLastPass;
  return doing.pass++ < last;
}

// Row by row, so that each is still in the cache when it is multiplied.
void FactorCoder::find_left(const Factored& matrix, const Range& rows,
                            std::span<const float> gradient) const {
  const std::int64_t columns = matrix.shape.columns();
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    float* const sum = matrix.residual.data() + i * columns;
    const float* const row = gradient.data() + i * columns;
    for (std::int64_t j = 0; j < columns; ++j) {
      sum[j] = decay_ * sum[j] + row[j];
    }
    matrix.shape.multiply(matrix.residual, matrix.right, {i, i + 1}, matrix.left);
  }
}

void FactorCoder::restore(const Factored& matrix, const Range& rows, std::uint32_t workers,
                          std::span<float> gradient) {
  const std::int64_t columns = matrix.shape.columns();
  const float share = 1.0F / static_cast<float>(workers);
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    matrix.shape.restore(matrix.left, matrix.right, {i, i + 1}, gradient);
    float* const lost = matrix.residual.data() + i * columns;
    const float* const row = gradient.data() + i * columns;
    for (std::int64_t j = 0; j < columns; ++j) {
      lost[j] -= share * row[j];
    }
  }
}

}  // namespace sluice
