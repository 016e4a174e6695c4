#include "staging.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace sluice::python {
namespace {

constexpr auto kNap = std::chrono::microseconds(20);
// Numbers between two ranges that are copied rather than left out: another copy would take longer.
constexpr std::int64_t kGap = 1024;

c10::Event new_event(c10::Device device) {
  return c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
}

void wait_for(const c10::Event& event) {
  while (!event.query()) {
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace

Staging::Staging(c10::Device device, at::Tensor host, std::size_t layers)
    : device_(device),
      streams_(device.type()),
      out_(streams_.getStreamFromGlobalPool(device)),
      in_(streams_.getStreamFromGlobalPool(device)),
      host_(std::move(host)),
      fetched_(at::empty(host_.sizes(), at::TensorOptions(at::kFloat).device(device))),
      ready_(new_event(device)),
      in_end_(new_event(device)) {
  for (std::size_t l = 0; l < layers; ++l) {
    arrived_.push_back(new_event(device));
  }
}

Staging::~Staging() {
  try {
    ready_.record(out_);
    wait_for(ready_);
    wait_for(in_end_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the device has failed, and copies nothing
  }
}

void Staging::bring(const at::Tensor& gradient, double scale, at::Tensor& target) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  ready_.record(current());
  ready_.block(out_);
  const c10::StreamGuard on(out_);
  gradient.record_stream(out_);
  const at::Tensor plain = gradient.to(at::kFloat).contiguous();
  target.copy_(scale == 1 ? plain : at::mul(plain, scale), /*non_blocking=*/true);
}

void Staging::close(std::size_t layer) {
  arrived_[layer].record(out_);
  on_the_way_.push_back(layer);
}

std::optional<std::size_t> Staging::next_arrival() {
  if (is_empty() || !arrived_[on_the_way_.front()].query()) {
    return {};
  }
  const std::size_t layer = on_the_way_.front();
  on_the_way_.pop_front();
  return layer;
}

void Staging::fetch(std::vector<Range> ranges) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  std::ranges::sort(ranges, {}, &Range::begin);
  const c10::Stream reader = current();
  {
    const c10::StreamGuard on(in_);
    for (std::size_t i = 0; i < ranges.size();) {
      Range all = ranges[i];
      for (++i; i < ranges.size() && ranges[i].begin - all.end <= kGap; ++i) {
        all.end = ranges[i].end;
      }
      fetched_.narrow(0, all.begin, all.size())
          .copy_(host_.narrow(0, all.begin, all.size()), /*non_blocking=*/true);
    }
  }
  in_end_.record(in_);
  in_end_.block(reader);
  in_end_.block(out_);
}

void Staging::wait_for_fetches() const { wait_for(in_end_); }

}  // namespace sluice::python
