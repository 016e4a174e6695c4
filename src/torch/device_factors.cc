#include "torch/device_factors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/finite.h"
#include "torch/flat_parameters.h"

namespace sluice {
namespace {

// Views of the parts of a flat tensor, one after the other.
class Parts {
 public:
  explicit Parts(const at::Tensor& flat) : flat_(flat) {}

  at::Tensor next(at::IntArrayRef sizes) {
    const auto count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1},
                                       [](auto product, auto size) { return product * size; });
    return flat_.narrow(0, std::exchange(begin_, begin_ + count), count).view(sizes);
  }

 private:
  const at::Tensor& flat_;
  std::int64_t begin_ = 0;
};

void queue_copy(const at::Tensor& from, const at::Tensor& to) {
  to.copy_(from, /*non_blocking=*/true);
}

// Elements of the host's memory, from this one on.
at::Tensor in_host(const at::Tensor& host, std::int64_t begin, const at::Tensor& like) {
  return host.narrow(0, begin, like.numel()).view(like.sizes());
}

}  // namespace

DeviceFactors::DeviceFactors(const Strategy& strategy, const ChunkMap& chunks, std::size_t workers,
                             const std::vector<Layer>& layers, at::Tensor gradients)
    : decay_(strategy.feedback_decay),
      share_(1.0 / static_cast<double>(workers)),
      chunks_(chunks.all().begin(), chunks.all().end()),
      gradients_(std::move(gradients)) {
  check(strategy.factored() && gradients_.dtype() == at::kFloat, "factors are of floats");
  std::int64_t values = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  for (const Layer& layer : layers) {
    if (const Matrix& matrix = layer.matrix; strategy.factors(matrix)) {
      const LowRank shape(matrix.rows, matrix.columns, strategy.power_rank);
      matrices_.push_back({.range = matrix.range(), .shape = shape});
      values += matrix.range().size();
      rows += shape.left_size();
      columns += shape.right_size();
    }
  }
  residuals_ = at::zeros({values}, gradients_.options());
  lefts_ = at::zeros({rows}, gradients_.options());
  rights_ = at::zeros({2 * columns}, gradients_.options());
  Parts of_residuals(residuals_);
  Parts of_lefts(lefts_);
  Parts of_rights(rights_);
  for (Factored& m : matrices_) {
    const auto [n, k, r] = std::tuple(m.shape.rows(), m.shape.columns(), m.shape.rank());
    m.gradient = view_in(gradients_, m.range).view({n, k});
    m.residual = of_residuals.next({n, k});
    m.left = of_lefts.next({r, n});
    m.rights = of_rights.next({2, r, k});
    m.right = m.rights.select(0, 0);
    m.start = m.rights.select(0, 1);
  }
  draw(strategy);
}

void DeviceFactors::draw(const Strategy& strategy) const {
  for (const Factored& m : matrices_) {
    const at::Tensor drawn = at::empty(m.start.sizes(), at::kFloat);
    const std::span<float> values = span_of(drawn.view({-1}));
    draw_right_factor(strategy.seed, m.range.begin, values);
    orthogonalise(values, m.shape.rank());
    m.start.copy_(drawn);
  }
}

const DeviceFactors::Factored& DeviceFactors::matrix_at(std::int64_t begin) const {
  const auto found = std::ranges::lower_bound(
      matrices_, begin, {}, [](const Factored& matrix) { return matrix.range.begin; });
  check(found != matrices_.end() && found->range.begin == begin, "a matrix begins there");
  return *found;
}

template <class OfMatrix, class OfRange>
void DeviceFactors::for_parts(std::span<const std::size_t> chunks, OfMatrix of_matrix,
                              OfRange of_range) const {
  Range plain;  // neighbours, since few long copies take less time to queue
  for (const std::size_t c : chunks) {
    const Chunk& chunk = chunks_[c];
    if (chunk.factor == Factor::kLeft) {
      of_matrix(matrix_at(chunk.range.begin));
    }
    if (chunk.factor != Factor::kNone) {
      continue;
    }
    if (plain.end != chunk.range.begin && !plain.empty()) {
      of_range(plain);
    }
    plain = plain.end == chunk.range.begin ? Range{plain.begin, chunk.range.end} : chunk.range;
  }
  if (!plain.empty()) {
    of_range(plain);
  }
}

void DeviceFactors::send(std::span<const Range> /*layers*/, std::span<const std::size_t> chunks,
                         const at::Tensor& host, Iteration /*iteration*/) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  std::vector<const Factored*> matrices;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> residuals;
  std::vector<Range>& sent = in_flight_.emplace_back();
  for_parts(
      chunks,
      [&](const Factored& matrix) {
        matrices.push_back(&matrix);
        gradients.push_back(matrix.gradient);
        residuals.push_back(matrix.residual);
      },
      [&](const Range& range) {
        queue_copy(view_in(gradients_, range), view_in(host, range));
        sent.push_back(range);
      });
  if (matrices.empty()) {
    return;
  }
  if (decay_ != 1) {
    at::_foreach_mul_(residuals, decay_);
  }
  at::_foreach_add_(residuals, gradients);
  for (const Factored* matrix : matrices) {
    at::Tensor left = matrix->left;
    at::mm_out(left, matrix->start, matrix->residual.t());
    queue_copy(left, in_host(host, matrix->range.begin, left));
    sent.push_back({matrix->range.begin, matrix->range.begin + left.numel()});
  }
}

void DeviceFactors::deliver(const at::Tensor& host) {
  check(!in_flight_.empty(), "what arrives was sent");
  for (const Range& range : in_flight_.front()) {
    const std::span<const float> values = span_of(view_in(host, range));
    if (all_finite(values)) {
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        not_finite_.push_back(range.begin + static_cast<std::int64_t>(i));
      }
    }
  }
  in_flight_.pop_front();
}

bool DeviceFactors::is_finite(const Range& layer) const {
  return std::ranges::none_of(not_finite_, [&](std::int64_t position) {
    return position >= layer.begin && position < layer.end;
  });
}

void DeviceFactors::find_right_factors(std::span<const Range> matrices,
                                       const at::Tensor& host) const {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  for (const Range& range : matrices) {
    const Factored& matrix = matrix_at(range.begin);
    queue_copy(in_host(host, range.begin, matrix.left), matrix.left);
    at::Tensor right = matrix.right;
    at::mm_out(right, matrix.left, matrix.residual);
    queue_copy(right, in_host(host, range.begin + matrix.left.numel(), right));
  }
}

void DeviceFactors::take_back(std::size_t first, std::size_t last, const at::Tensor& host) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  not_finite_.clear();
  std::vector<std::size_t> chunks(last - first);
  std::iota(chunks.begin(), chunks.end(), first);
  std::vector<at::Tensor> products;
  std::vector<at::Tensor> residuals;
  for_parts(
      chunks,
      [&](const Factored& matrix) {
        queue_copy(in_host(host, matrix.range.begin + matrix.left.numel(), matrix.rights),
                   matrix.rights);
        at::Tensor product = matrix.gradient;
        at::mm_out(product, matrix.left.t(), matrix.right);
        products.push_back(product);
        residuals.push_back(matrix.residual);
      },
      [&](const Range& range) { queue_copy(view_in(host, range), view_in(gradients_, range)); });
  if (!products.empty()) {
    at::_foreach_add_(residuals, products, -share_);
  }
}

}  // namespace sluice
