#include "torch/device_trail.h"

#include <algorithm>
#include <utility>

#include "torch/event_time.h"

namespace sluice {
namespace {

// A shorter wait is the time between two events with nothing between them.
constexpr Duration kShortestWait = std::chrono::microseconds(10);

// Zero if LibTorch cannot measure it.
template <class Event>
Duration between(const Event& begin, const Event& end) {
  if constexpr (TellsTime<Event>) {
    return from_us(begin.elapsedTime(end) * 1e3);
  } else {
    return Duration(0);
  }
}

}  // namespace

c10::Event new_event(c10::DeviceType device) {
  return c10::Event(device, c10::EventFlag::BACKEND_DEFAULT);
}

DeviceTrail::DeviceTrail(c10::DeviceType device)
    : reached(new_event(device)),
      in_begin(new_event(device)),
      in_end(new_event(device)),
      ready(new_event(device)),
      out_end(new_event(device)) {}

// Times count backwards from `now`: the earlier, the larger.
std::vector<DeviceSpan> spans_of(const std::vector<DeviceTrail>& trails,
                                 const c10::Event& forward_end,
                                 std::span<const LayerId> forward_order,
                                 std::span<const LayerId> backward_order,
                                 const std::function<bool(LayerId layer)>& leaves) {
  using Task = DeviceSpan::Task;
  std::vector<DeviceSpan> spans;
  const c10::Event& now = trails[backward_order.back().index()].out_end;
  const Duration turn = between(forward_end, now);
  Duration next = turn;
  for (std::size_t i = forward_order.size(); i-- > 0;) {
    const LayerId layer = forward_order[i];
    const DeviceTrail& trail = trails[layer.index()];
    const Duration reached = between(trail.reached, now);
    const LayerId brought_with = trail.brought_with.value_or(layer);
    const Duration in_end =
        trail.brought_with ? between(trails[brought_with.index()].in_end, now) : reached;
    const Duration begun = std::min(reached, in_end);
    if (trail.brought_with == layer) {
      spans.push_back({layer, Task::kCopyIn, between(trail.in_begin, now), in_end});
    }
    spans.push_back({layer, Task::kForward, begun, std::exchange(next, reached)});
    if (reached - begun >= kShortestWait) {
      spans.push_back({layer, Task::kWait, reached, begun});
    }
  }
  std::reverse(spans.begin(), spans.end());
  Duration since = turn;
  Duration left = turn;
  for (const LayerId layer : backward_order) {
    const Duration ready = between(trails[layer.index()].ready, now);
    const Duration out_end = between(trails[layer.index()].out_end, now);
    spans.push_back({layer, Task::kBackward, std::exchange(since, ready), ready});
    if (leaves(layer)) {
      spans.push_back({layer, Task::kCopyOut, std::min(ready, left), out_end});
    }
    left = out_end;
  }
  return spans;
}

}  // namespace sluice
