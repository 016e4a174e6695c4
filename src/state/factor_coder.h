#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/zeroed_buffer.h"
#include "codecs/low_rank.h"
#include "model/layer.h"
#include "model/strategy.h"
#include "state/remembered.h"
#include "state/work_in_parts.h"

namespace sluice {

// The factors of the matrices of one worker (PowerSGD). Of each matrix it keeps between iterations
// what the factors have lost, and the right factor, with which the next iteration begins. Works on
// different matrices may be done at a time, and so may the parts of one: rows, or columns.
//
// The gradient's memory holds, in this order, the gradient, then at its beginning the left factor
// and after it the right one, and at last the product of their sums:
//
//   kLeftFactor   orthogonalise Q;  M <- gradient + residual, P <- M Q;  P goes to be summed
//   kRightFactor  orthogonalise the sum of P;  Q <- M^T P, which goes to be summed
//   kFromFactors  take the sum of Q;  gradient <- P Q^T, residual <- M - its mean
//
// M is in the memory of the residual.
class FactorCoder {
 public:
  FactorCoder(const Strategy& strategy, std::span<const Layer> layers);

  static bool does(WorkKind kind) {
    return kind == WorkKind::kLeftFactor || kind == WorkKind::kRightFactor ||
           kind == WorkKind::kFromFactors;
  }
  // Rows or columns of the matrix of this work.
  std::vector<Range> cut(const Work& work, std::int64_t parts) const;
  // One pass over all parts follows the other until there are no more. The gradient is that of the
  // work's range, which is the whole matrix.
  void do_part(const WorkInParts& doing, std::size_t part, std::span<float> gradient);
  static bool more(WorkInParts& doing);

  std::vector<Remembered> remembered() const {
    return {{"powersgd.residual", {residuals_.values()}}, {"powersgd.q", {rights_.values()}}};
  }

 private:
  struct Factored {
    std::int64_t begin;  // of the matrix
    LowRank shape;
    std::span<float> residual;
    std::span<float> left;
    std::span<float> right;
  };

  const Factored& matrix_of(const Work& work) const;
  void find_left(const Factored& matrix, const Range& rows, std::span<const float> gradient) const;
  static void restore(const Factored& matrix, const Range& rows, std::uint32_t workers,
                      std::span<float> gradient);

  float decay_;  // of the residual
  ZeroedBuffer residuals_;
  ZeroedBuffer lefts_;
  ZeroedBuffer rights_;
  std::vector<Factored> matrices_;  // by their begin
};

}  // namespace sluice
