#include "torch/device_selection.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "codecs/sparse.h"
#include "torch/flat_parameters.h"

namespace sluice {
namespace {

// In memory that the device copies from and to by itself.
at::Tensor staging(std::int64_t elements, at::ScalarType type, const c10::Device& device) {
  return at::empty({elements}, at::TensorOptions(type).pinned_memory(!device.is_cpu()));
}

at::Tensor on_its_way_to_host(const at::Tensor& values) {
  return staging(values.numel(), values.scalar_type(), values.device())
      .copy_(values, /*non_blocking=*/true);
}

template <class T>
at::Tensor on_its_way_to(const c10::Device& device, std::span<const T> values) {
  const auto type = c10::CppTypeToScalarType<T>::value;
  const at::Tensor staged = staging(std::ssize(values), type, device);
  std::ranges::copy(values, staged.data_ptr<T>());
  return staged.to(device, type, /*non_blocking=*/true);
}

std::span<std::byte> bytes_in(const at::Tensor& host, const Range& chunk) {
  return std::as_writable_bytes(span_of(view_in(host, chunk)));
}

// Ranges that follow each other as one.
std::vector<Range> joined(std::span<const Range> ranges) {
  std::vector<Range> all;
  for (const Range& range : ranges) {
    if (!all.empty() && all.back().end == range.begin) {
      all.back().end = range.end;
    } else {
      all.push_back(range);
    }
  }
  return all;
}

}  // namespace

DeviceSelection::DeviceSelection(const DeepGradientOptions& options,
                                 const DeepGradientSender& sender, std::vector<Range> chunks,
                                 at::Tensor gradients, at::Tensor parameters, at::Tensor latest)
    : options_(options),
      sender_(sender),
      chunks_(std::move(chunks)),
      gradients_(std::move(gradients)),
      parameters_(std::move(parameters)),
      latest_(std::move(latest)),
      velocity_(at::zeros_like(gradients_)),
      residual_(at::zeros_like(gradients_)) {}

void DeviceSelection::clip(std::span<const Range> layers) const {
  std::vector<at::Tensor> gradients;
  for (const Range& layer : layers) {
    if (layer.size() > 0) {
      gradients.push_back(view_in(gradients_, layer));
    }
  }
  if (gradients.empty()) {
    return;
  }
  const at::Tensor norms = at::stack(at::_foreach_norm(gradients, 2));
  const at::Tensor shares = norms.reciprocal().mul_(sender_.clip_norm(options_)).clamp_max_(1);
  const at::Tensor factors = at::where(norms.isfinite(), shares, at::ones_like(shares));
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    gradients[g].mul_(factors.select(0, static_cast<std::int64_t>(g)));
  }
}

void DeviceSelection::take_in(std::span<const Range> layers) const {
  if (options_.clipping) {
    clip(layers);
  }
  for (const Range& range : joined(layers)) {
    at::Tensor gradient = view_in(gradients_, range);
    at::Tensor velocity = view_in(velocity_, range);
    at::Tensor residual = view_in(residual_, range);
    if (const float decay = sender_.decay(); decay != 0) {
      gradient.add_(view_in(parameters_, range), decay);
    }
    if (options_.momentum_correction) {
      velocity.mul_(sender_.momentum).add_(gradient);
    } else {
      velocity.copy_(gradient);
    }
    if (options_.accumulation) {
      residual.add_(velocity);
    } else {
      residual.copy_(velocity);
    }
  }
}

void DeviceSelection::find_largest(std::size_t first, std::size_t last, Iteration iteration,
                                   std::vector<at::Tensor>& found) const {
  const std::int64_t begin = chunks_[first].begin;
  const at::Tensor magnitudes = view_in(residual_, {begin, chunks_[last - 1].end}).abs();
  for_rows(chunks_, first, last, [&](std::size_t row, std::size_t end) {
    const std::int64_t length = chunks_[row].size();
    const auto count =
        static_cast<std::int64_t>(options_.entries(static_cast<std::size_t>(length), iteration));
    const auto rows = static_cast<std::int64_t>(end - row);
    const at::Tensor values =
        magnitudes.narrow(0, chunks_[row].begin - begin, rows * length).view({rows, length});
    at::Tensor positions = std::get<1>(values.topk(count, 1, /*largest=*/true, /*sorted=*/false))
                               .add_(chunks_[row].begin);
    if (rows > 1) {
      positions.add_(at::arange(rows, positions.options()).mul_(length).unsqueeze(1));
    }
    found.push_back(positions.flatten());
  });
}

void DeviceSelection::send(std::span<const Range> layers, std::span<const std::size_t> chunks,
                           const at::Tensor& /*host*/, Iteration iteration) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  take_in(layers);
  Selected selected;
  selected.chunks.assign(chunks.begin(), chunks.end());
  for (const std::size_t chunk : chunks) {
    selected.entries.push_back(
        options_.entries(static_cast<std::size_t>(chunks_[chunk].size()), iteration));
  }
  if (!chunks.empty()) {
    std::vector<at::Tensor> found;
    for_runs(chunks, [&](std::size_t first, std::size_t last) {
      find_largest(first, last, iteration, found);
    });
    const at::Tensor positions = std::get<0>(at::cat(found).sort());
    selected.positions = on_its_way_to_host(positions);
    selected.values = on_its_way_to_host(residual_.index_select(0, positions));
    residual_.index_fill_(0, positions, 0);
    if (options_.factor_masking) {
      velocity_.index_fill_(0, positions, 0);
    }
  }
  in_flight_.push_back(std::move(selected));
}

void DeviceSelection::deliver(const at::Tensor& host) {
  check(!in_flight_.empty(), "what arrives was sent");
  const Selected selected = std::move(in_flight_.front());
  in_flight_.pop_front();
  std::size_t done = 0;
  for (std::size_t c = 0; c < selected.chunks.size(); ++c) {
    const Range& chunk = chunks_[selected.chunks[c]];
    const std::size_t entries = selected.entries[c];
    const std::int64_t* positions = selected.positions.data_ptr<std::int64_t>() + done;
    const float* values = selected.values.data_ptr<float>() + done;
    const std::span<std::byte> memory = bytes_in(host, chunk);
    check(sparse_size(static_cast<std::int64_t>(entries)) <= std::ssize(memory),
          "a code fits into the memory of its gradient");
    store(memory.data(), 0, static_cast<std::uint32_t>(entries));
    std::byte* const after = memory.data() + sizeof(std::uint32_t);
    for (std::size_t e = 0; e < entries; ++e) {
      store(after, e, static_cast<std::uint32_t>(positions[e] - chunk.begin));
      store(after, entries + e, values[e]);
      if (!std::isfinite(values[e])) {
        not_finite_.push_back(positions[e]);
      }
    }
    done += entries;
  }
}

bool DeviceSelection::is_finite(const Range& layer) const {
  return std::ranges::none_of(not_finite_, [&](std::int64_t position) {
    return position >= layer.begin && position < layer.end;
  });
}

void DeviceSelection::take_back(std::size_t first, std::size_t last, const at::Tensor& host) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  not_finite_.clear();
  const c10::Device device = parameters_.device();
  std::vector<std::int64_t> positions;
  std::vector<float> values;
  for (std::size_t c = first; c < last; ++c) {
    const Range& chunk = chunks_[c];
    const std::span<const std::byte> memory = bytes_in(host, chunk);
    const auto entries = load<std::uint32_t>(memory.data(), 0);
    if (entries == kAllChanged) {
      view_in(parameters_, chunk).copy_(view_in(latest_, chunk), /*non_blocking=*/true);
      continue;
    }
    const auto patch = SparseView::parse(
        memory.first(static_cast<std::size_t>(sparse_size(entries))), chunk.size());
    check(static_cast<bool>(patch), "the worker has looked at the patch before");
    for (std::size_t e = 0; e < patch->entries(); ++e) {
      positions.push_back(chunk.begin + patch->position(e));
      values.push_back(patch->value(e));
    }
  }
  if (!positions.empty()) {
    parameters_.index_copy_(0, on_its_way_to(device, std::span<const std::int64_t>(positions)),
                            on_its_way_to(device, std::span<const float>(values)));
  }
}

}  // namespace sluice
