#include "codecs/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/dot.h"
#include "base/random.h"

namespace sluice {
namespace {

// Sums in so many lanes, which a compiler makes registers of.
constexpr std::int64_t kLanes = 8;
// Columns of a factor that share a pass over the matrix.
constexpr std::int64_t kTogether = 4;
// Columns of the matrix whose sums stay in the fastest cache.
constexpr std::int64_t kColumnsAtOnce = 512;
// A column of length 1 of which no more is left was a sum of those before it.
constexpr double kDependent = 1e-5;

// Calls f.operator()<K>(first) for groups of K columns, the first of which has this index.
template <class F>
void in_groups(std::int64_t rank, F f) {
  std::int64_t first = 0;
  for (; first + kTogether <= rank; first += kTogether) {
    f.template operator()<kTogether>(first);
  }
  for (; first < rank; ++first) {
    f.template operator()<1>(first);
  }
}

// The products of a row with K columns of a factor that has `length` rows.
template <std::int64_t K>
std::array<float, K> products(const float* row, const float* columns, std::int64_t length) {
  std::array<std::array<float, kLanes>, K> sums{};
  std::int64_t j = 0;
  for (; j + kLanes <= length; j += kLanes) {
    for (std::int64_t k = 0; k < K; ++k) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        sums[k][lane] += row[j + lane] * columns[k * length + j + lane];
      }
    }
  }
  std::array<float, K> totals{};
  for (std::int64_t k = 0; k < K; ++k) {
    for (std::int64_t rest = j; rest < length; ++rest) {
      sums[k][rest - j] += row[rest] * columns[k * length + rest];
    }
    for (const float sum : sums[k]) {
      totals[k] += sum;
    }
  }
  return totals;
}

// The sums of all rows of a block of columns, each row times what K columns of the left factor say.
template <std::int64_t K>
struct BlockSums {
  std::array<std::array<float, kColumnsAtOnce>, K> values{};

  void add(const float* row, const float* next, const float* left, std::int64_t rows,
           std::int64_t size) {
    for (std::int64_t k = 0; k < K; ++k) {
      const float a = left[k * rows];
      const float b = left[k * rows + 1];
      for (std::int64_t j = 0; j < size; ++j) {
        values[k][j] += a * row[j] + b * next[j];
      }
    }
  }
  void add(const float* row, const float* left, std::int64_t rows, std::int64_t size) {
    for (std::int64_t k = 0; k < K; ++k) {
      const float a = left[k * rows];
      for (std::int64_t j = 0; j < size; ++j) {
        values[k][j] += a * row[j];
      }
    }
  }
};

// Makes a column of this length one of length 1, unless it is zero.
void normalise(std::span<float> column, double length) {
  const double scale = length == 0 ? 0 : 1 / length;
  for (float& value : column) {
    value = static_cast<float>(static_cast<double>(value) * scale);
  }
}

// Takes out what it has of the columns before it: twice, since once leaves the rounding of a long
// column. Returns the length that is left.
double make_orthogonal(std::span<float> column, std::span<const float> before) {
  const std::size_t size = column.size();
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t begin = 0; begin < before.size(); begin += size) {
      const std::span<const float> other = before.subspan(begin, size);
      const auto share = static_cast<float>(dot(column, other));
      for (std::size_t i = 0; i < size; ++i) {
        column[i] -= share * other[i];
      }
    }
  }
  return std::sqrt(dot(column, column));
}

// The axis that the columns before know least of.
std::size_t free_axis(std::size_t size, std::span<const float> before) {
  std::size_t best = 0;
  double least = 2;
  for (std::size_t i = 0; i < size; ++i) {
    double known = 0;
    for (std::size_t at = i; at < before.size(); at += size) {
      known += static_cast<double>(before[at]) * static_cast<double>(before[at]);
    }
    if (known < least) {
      least = known;
      best = i;
    }
  }
  return best;
}

}  // namespace

LowRank::LowRank(std::int64_t rows, std::int64_t columns, std::int64_t rank)
    : rows_(rows), columns_(columns), rank_(rank) {
  check(rank > 0 && rank <= rows && rank <= columns, "a rank is at most that of its matrix");
}

void LowRank::multiply(std::span<const float> matrix, std::span<const float> right,
                       const Range& rows, std::span<float> left) const {
  check(std::ssize(matrix) == rows_ * columns_ && std::ssize(right) == right_size() &&
            std::ssize(left) == left_size(),
        "factors fit their matrix");
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    const float* const row = matrix.data() + i * columns_;
    in_groups(rank_, [&]<std::int64_t K>(std::int64_t first) {
      const auto totals = products<K>(row, right.data() + first * columns_, columns_);
      for (std::int64_t k = 0; k < K; ++k) {
        left[static_cast<std::size_t>((first + k) * rows_ + i)] =
            totals[static_cast<std::size_t>(k)];
      }
    });
  }
}

void LowRank::multiply_transposed(std::span<const float> matrix, std::span<const float> left,
                                  const Range& columns, std::span<float> right) const {
  check(std::ssize(matrix) == rows_ * columns_ && std::ssize(right) == right_size() &&
            std::ssize(left) == left_size(),
        "factors fit their matrix");
  for (std::int64_t begin = columns.begin; begin < columns.end; begin += kColumnsAtOnce) {
    const std::int64_t size = std::min(kColumnsAtOnce, columns.end - begin);
    in_groups(rank_, [&]<std::int64_t K>(std::int64_t first) {
      BlockSums<K> sums;
      const float* row = matrix.data() + begin;
      const float* factor = left.data() + first * rows_;
      std::int64_t i = 0;
      for (; i + 2 <= rows_; i += 2) {
        sums.add(row + i * columns_, row + (i + 1) * columns_, factor + i, rows_, size);
      }
      if (i < rows_) {
        sums.add(row + i * columns_, factor + i, rows_, size);
      }
      for (std::int64_t k = 0; k < K; ++k) {
        std::copy_n(sums.values[static_cast<std::size_t>(k)].begin(), size,
                    right.data() + (first + k) * columns_ + begin);
      }
    });
  }
}

void LowRank::restore(std::span<const float> left, std::span<const float> right, const Range& rows,
                      std::span<float> product) const {
  check(std::ssize(product) == rows_ * columns_ && std::ssize(right) == right_size() &&
            std::ssize(left) == left_size(),
        "factors fit their matrix");
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    float* const row = product.data() + i * columns_;
    std::fill_n(row, columns_, 0.0F);
    in_groups(rank_, [&]<std::int64_t K>(std::int64_t first) {
      const float* const columns = right.data() + first * columns_;
      std::array<float, K> shares{};
      for (std::int64_t k = 0; k < K; ++k) {
        shares[static_cast<std::size_t>(k)] =
            left[static_cast<std::size_t>((first + k) * rows_ + i)];
      }
      for (std::int64_t j = 0; j < columns_; ++j) {
        float sum = row[j];
        for (std::int64_t k = 0; k < K; ++k) {
          sum += shares[static_cast<std::size_t>(k)] * columns[k * columns_ + j];
        }
        row[j] = sum;
      }
    });
  }
}

void draw_right_factor(std::uint64_t seed, std::int64_t matrix_begin, std::span<float> right) {
  Random random(seed, static_cast<std::uint64_t>(matrix_begin));
  for (float& value : right) {
    value = static_cast<float>(random.uniform() - 0.5);
  }
}

void orthogonalise(std::span<float> factor, std::int64_t rank) {
  check(rank > 0 && std::ssize(factor) % rank == 0 && std::ssize(factor) / rank >= rank,
        "a factor has at least as many rows as columns");
  const std::size_t size = factor.size() / static_cast<std::size_t>(rank);
  for (std::size_t begin = 0; begin < factor.size(); begin += size) {
    const std::span<float> column = factor.subspan(begin, size);
    const std::span<const float> before = factor.first(begin);
    // Before the subtractions: else what is left of a tiny column is lost among denormal numbers.
    normalise(column, std::sqrt(dot(column, column)));
    double length = make_orthogonal(column, before);
    if (length <= kDependent) {
      std::ranges::fill(column, 0.0F);
      column[free_axis(size, before)] = 1;
      length = make_orthogonal(column, before);
    }
    normalise(column, length);
  }
}

}  // namespace sluice
