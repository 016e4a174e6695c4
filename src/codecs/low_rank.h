#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/range.h"

namespace sluice {

// The arithmetic of PowerSGD (Vogels et al., 2019): a matrix M of n rows and m columns is nearly
// P Q^T, where the left factor P has n rows, the right one Q has m, and both have as many columns
// as the rank says. M stands row by row, a factor column by column. Whoever cuts a product into
// rows or columns gets the same bits as for the whole.
class LowRank {
 public:
  // The rank is no more than the rows or columns.
  LowRank(std::int64_t rows, std::int64_t columns, std::int64_t rank);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t left_size() const { return rows_ * rank_; }
  std::int64_t right_size() const { return columns_ * rank_; }

  // These rows of P <- M Q
  void multiply(std::span<const float> matrix, std::span<const float> right, const Range& rows,
                std::span<float> left) const;
  // These rows of Q, which are columns of M <- M^T P
  void multiply_transposed(std::span<const float> matrix, std::span<const float> left,
                           const Range& columns, std::span<float> right) const;
  // These rows of the product <- P Q^T
  void restore(std::span<const float> left, std::span<const float> right, const Range& rows,
               std::span<float> product) const;

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t rank_;
};

// The right factor with which the matrix that begins here begins: the same on all workers.
void draw_right_factor(std::uint64_t seed, std::int64_t matrix_begin, std::span<float> right);

// Makes the columns of a factor orthonormal, from the first on (Gram-Schmidt). One that depends on
// those before it, such as a zero, becomes a direction that does not: else it would stay lost.
// Numbers that are not finite stay so.
void orthogonalise(std::span<float> factor, std::int64_t rank);

}  // namespace sluice
