#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "base/range.h"

namespace sluice::python {

// Between a device and pinned memory of the host: gradients one way, sums the other. Each way has a
// stream of its own, so that neither pass waits for more than it needs. Calls come from one thread
// at a time.
class Staging {
 public:
  // `host` is flat: gradients, and later sums, of so many layers side by side.
  Staging(c10::Device device, at::Tensor host, std::size_t layers);
  ~Staging();  // waits for what is on its way
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  c10::Device device() const { return device_; }

  // Queues `scale * gradient` for this place on the host, behind all work of the current stream.
  void bring(const at::Tensor& gradient, double scale, at::Tensor& target);
  // All gradients of the layer have been queued.
  void close(std::size_t layer);
  // The next closed layer whose gradients have arrived, in the order in which they were closed.
  std::optional<std::size_t> next_arrival();
  bool is_empty() const { return on_the_way_.empty(); }

  // Queues copies of what is on the host, for all further work of the current stream. The device
  // must have finished its work on what was there before.
  void fetch(std::vector<Range> ranges);
  // What was fetched: flat as `host`.
  const at::Tensor& fetched() const { return fetched_; }
  // Returns when the host may write where it was fetched from.
  void wait_for_fetches() const;

 private:
  c10::Stream current() const { return streams_.getStream(device_); }

  c10::Device device_;
  c10::impl::VirtualGuardImpl streams_;
  c10::Stream out_;
  c10::Stream in_;
  at::Tensor host_;
  at::Tensor fetched_;
  c10::Event ready_;
  c10::Event in_end_;
  std::vector<c10::Event> arrived_;  // by layer
  std::deque<std::size_t> on_the_way_;
};

}  // namespace sluice::python
