#include "codecs/low_rank.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

using Floats = std::vector<float>;

Floats some_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random.uniform() - 0.5));
  }
  return values;
}

struct Case {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t rank;
  std::uint64_t seed;

  LowRank shape() const { return {rows, columns, rank}; }
  Floats matrix() const { return some_floats(rows * columns, seed); }
};

// Also wider than what is summed at a time, and of ranks that are no multiple of what is done
// together.
Case any_case() {
  Case made{.rows = *rc::gen::inRange<std::int64_t>(1, 40),
            .columns = *rc::gen::element<std::int64_t>(1, 2, 7, 8, 31, 512, 520, 1030),
            .rank = 1,
            .seed = *rc::gen::arbitrary<std::uint64_t>()};
  made.rank = *rc::gen::inRange<std::int64_t>(1, 1 + std::min({made.rows, made.columns, 9L}));
  return made;
}

double at(const Floats& values, std::int64_t index) {
  return static_cast<double>(values[static_cast<std::size_t>(index)]);
}

double product(const Floats& factor, std::int64_t rank, std::int64_t a, std::int64_t b) {
  const std::int64_t rows = std::ssize(factor) / rank;
  double sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    sum += at(factor, a * rows + i) * at(factor, b * rows + i);
  }
  return sum;
}

bool is_orthonormal(const Floats& factor, std::int64_t rank) {
  for (std::int64_t a = 0; a < rank; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      if (!(std::abs(product(factor, rank, a, b) - (a == b ? 1 : 0)) < 1e-5)) {
        return false;
      }
    }
  }
  return true;
}

// The nearest to the matrix that has this left factor.
Floats projected(const LowRank& shape, const Floats& matrix, Floats left) {
  Floats right(static_cast<std::size_t>(shape.right_size()));
  Floats nearest(matrix.size());
  orthogonalise(left, shape.rank());
  shape.multiply_transposed(matrix, left, {0, shape.columns()}, right);
  shape.restore(left, right, {0, shape.rows()}, nearest);
  return nearest;
}

RC_GTEST_PROP(LowRank, ProductsAreThoseOfThreePlainLoops, ()) {
  const Case made = any_case();
  const LowRank shape = made.shape();
  const Floats matrix = made.matrix();
  const Floats right = some_floats(shape.right_size(), made.seed + 1);
  const Floats left = some_floats(shape.left_size(), made.seed + 2);
  Floats found_left(left.size());
  Floats found_right(right.size());
  Floats found(matrix.size());
  shape.multiply(matrix, right, {0, made.rows}, found_left);
  shape.multiply_transposed(matrix, left, {0, made.columns}, found_right);
  shape.restore(left, right, {0, made.rows}, found);
  std::vector<double> by_row(left.size());
  std::vector<double> by_column(right.size());
  for (std::int64_t i = 0; i < made.rows; ++i) {
    for (std::int64_t j = 0; j < made.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < made.rank; ++k) {
        const double m = at(matrix, i * made.columns + j);
        const double p = at(left, k * made.rows + i);
        const double q = at(right, k * made.columns + j);
        by_row[static_cast<std::size_t>(k * made.rows + i)] += m * q;
        by_column[static_cast<std::size_t>(k * made.columns + j)] += m * p;
        sum += p * q;
      }
      RC_ASSERT(std::abs(at(found, i * made.columns + j) - sum) < 1e-5);
    }
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    RC_ASSERT(std::abs(static_cast<double>(found_left[i]) - by_row[i]) < 1e-4);
  }
  for (std::size_t j = 0; j < right.size(); ++j) {
    RC_ASSERT(std::abs(static_cast<double>(found_right[j]) - by_column[j]) < 1e-4);
  }
}

RC_GTEST_PROP(LowRank, PartsGiveTheSameBits, ()) {
  const Case made = any_case();
  const LowRank shape = made.shape();
  const Floats matrix = made.matrix();
  const Floats right = some_floats(shape.right_size(), made.seed + 1);
  const Floats left = some_floats(shape.left_size(), made.seed + 2);
  const auto cut_row = *rc::gen::inRange<std::int64_t>(0, made.rows + 1);
  const auto cut_column = *rc::gen::inRange<std::int64_t>(0, made.columns + 1);
  Floats whole_left(left.size());
  Floats parts_left(left.size());
  Floats whole_right(right.size());
  Floats parts_right(right.size());
  Floats whole(matrix.size());
  Floats parts(matrix.size());
  shape.multiply(matrix, right, {0, made.rows}, whole_left);
  shape.multiply(matrix, right, {cut_row, made.rows}, parts_left);
  shape.multiply(matrix, right, {0, cut_row}, parts_left);
  shape.multiply_transposed(matrix, left, {0, made.columns}, whole_right);
  shape.multiply_transposed(matrix, left, {0, cut_column}, parts_right);
  shape.multiply_transposed(matrix, left, {cut_column, made.columns}, parts_right);
  shape.restore(left, right, {0, made.rows}, whole);
  shape.restore(left, right, {cut_row, made.rows}, parts);
  shape.restore(left, right, {0, cut_row}, parts);
  RC_ASSERT(parts_left == whole_left);
  RC_ASSERT(parts_right == whole_right);
  RC_ASSERT(parts == whole);
}

RC_GTEST_PROP(LowRank, AFullRankReproducesTheMatrix, ()) {
  Case made = any_case();
  made.columns = std::min<std::int64_t>(made.columns, 31);
  made.rank = std::min(made.rows, made.columns);
  const LowRank shape = made.shape();
  const Floats matrix = made.matrix();
  Floats right = some_floats(shape.right_size(), made.seed + 1);
  Floats left(static_cast<std::size_t>(shape.left_size()));
  orthogonalise(right, made.rank);
  shape.multiply(matrix, right, {0, made.rows}, left);
  const Floats nearest = projected(shape, matrix, left);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    RC_ASSERT(std::abs(nearest[i] - matrix[i]) < 1e-3F);
  }
}

// Also of columns that depend on each other, are zero or denormal.
RC_GTEST_PROP(LowRank, ColumnsBecomeOrthonormal, ()) {
  const auto rank = *rc::gen::inRange<std::int64_t>(1, 9);
  const std::int64_t rows = rank + *rc::gen::inRange<std::int64_t>(0, 100);
  const Floats plain = some_floats(rank * rows, *rc::gen::arbitrary<std::uint64_t>());
  Floats factor;
  for (std::int64_t k = 0; k < rank; ++k) {
    const float scale = *rc::gen::element(0.0F, 1e-42F, 1e-30F, 1e-6F, 1.0F, 1e15F, 1e38F);
    const auto copied = *rc::gen::inRange<std::int64_t>(0, 2 * k + 1);
    const std::int64_t from = copied < k ? copied : k;
    for (std::int64_t i = 0; i < rows; ++i) {
      factor.push_back(scale * plain[static_cast<std::size_t>(from * rows + i)]);
    }
  }
  orthogonalise(factor, rank);
  RC_ASSERT(is_orthonormal(factor, rank));
}

TEST(LowRank, TheFirstColumnKeepsItsDirection) {
  Floats factor{3, 0, 4, 0, 1, 1, 0, 1};
  orthogonalise(factor, 2);
  EXPECT_FLOAT_EQ(factor[0], 0.6F);
  EXPECT_FLOAT_EQ(factor[2], 0.8F);
  EXPECT_GT(factor[5], 0);
  EXPECT_TRUE(is_orthonormal(factor, 2));
}

TEST(LowRank, AZeroMatrixStaysZeroAndItsFactorsFinite) {
  const LowRank shape(6, 5, 3);
  const Floats zeros(30);
  Floats left(18);
  const Floats nearest = projected(shape, zeros, left);
  EXPECT_EQ(nearest, zeros);
}

TEST(LowRank, WhatIsNotFiniteShows) {
  Floats factor = some_floats(12, 1);
  factor[1] = std::numeric_limits<float>::infinity();
  orthogonalise(factor, 2);
  EXPECT_TRUE(std::ranges::any_of(factor, [](float value) { return std::isnan(value); }));
}

}  // namespace
}  // namespace sluice
