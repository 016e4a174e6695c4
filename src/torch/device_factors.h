#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "codecs/low_rank.h"
#include "model/strategy.h"
#include "partition/chunk_map.h"
#include "torch/device_packer.h"

namespace sluice {

// Codec powersgd where the gradients are: as state/factor_coder.h, but for the order of additions.
// The host makes sums orthonormal: see Learner::find_right_factors().
//
// Replicas stay equal to the last bit, although each process queues its products when its sums
// arrive, and together with others: both factors of what is applied are bits that all have, and
// every product of a matrix is a call of its own, on the same shapes in every process. A batched
// product would choose its kernel, and with that its rounding, by how many matrices are in it.
class DeviceFactors final : public DevicePacker {
 public:
  // Gradients are sums over so many workers when they come back.
  DeviceFactors(const Strategy& strategy, const ChunkMap& chunks, std::size_t workers,
                const std::vector<Layer>& layers, at::Tensor gradients);

  // Gradients of what is no factored matrix are copied as they are.
  void send(std::span<const Range> layers, std::span<const std::size_t> chunks,
            const at::Tensor& host, Iteration iteration) override;
  void deliver(const at::Tensor& host) override;
  void take_back(std::size_t first, std::size_t last, const at::Tensor& host) override;
  // From any thread, while the other calls are about other matrices.
  void find_right_factors(std::span<const Range> matrices, const at::Tensor& host) const override;
  // A left factor is finite if its matrix is.
  bool finds_not_finite() const override { return true; }
  bool is_finite(const Range& layer) const override;
  std::int64_t worth_sending() const override { return 8'000'000; }
  // What factors have lost, and the right ones.
  std::vector<at::Tensor> state() const override { return {residuals_, rights_}; }

 private:
  // Matrices stand row by row, factors column by column: each column is a row of the tensor. All
  // are views.
  struct Factored {
    Range range;
    LowRank shape;
    at::Tensor gradient = {};
    at::Tensor residual = {};  // M while the gradient is exchanged
    at::Tensor left = {};
    at::Tensor right = {};
    at::Tensor start = {};   // the right factor with which the next iteration begins
    at::Tensor rights = {};  // both of them, as they stand in the host's memory
  };

  const Factored& matrix_at(std::int64_t begin) const;
  void draw(const Strategy& strategy) const;
  // Calls these with the matrices of the chunks, and with ranges of all that is in none.
  template <class OfMatrix, class OfRange>
  void for_parts(std::span<const std::size_t> chunks, OfMatrix of_matrix, OfRange of_range) const;

  double decay_;  // of the residuals
  double share_;  // of this worker in a sum
  std::vector<Chunk> chunks_;
  at::Tensor gradients_;
  at::Tensor residuals_;
  at::Tensor lefts_;
  at::Tensor rights_;
  std::vector<Factored> matrices_;            // by their begin
  std::deque<std::vector<Range>> in_flight_;  // by call of send(): what the host gets
  std::vector<std::int64_t> not_finite_;      // positions of what it got in this step
};

}  // namespace sluice
