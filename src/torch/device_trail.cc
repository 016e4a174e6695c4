#include "torch/device_trail.h"

#include <algorithm>
#include <utility>

#include "torch/event_time.h"
#include "torch/gradient_extremes.h"

namespace sluice {
namespace {

// A shorter wait is the time between two events with nothing between them.
constexpr Duration kShortestWait = std::chrono::microseconds(10);

template <class Event>
Duration measured(const Event& begin, const Event& end) {
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

DeviceStep::DeviceStep(c10::DeviceType device, std::size_t layers)
    : forward_end(new_event(device)), extremes(GradientExtremes::on_host(layers)) {
  for (std::size_t l = 0; l < layers; ++l) {
    trails.emplace_back(device);
  }
}

void DeviceStep::begin(Iteration of) {
  iteration = of;
  forward_order.clear();
  backward_order.clear();
  for (DeviceTrail& trail : trails) {
    trail.brought_with.reset();
  }
}

Duration time_between(const c10::Event& begin, const c10::Event& end) {
  return measured(begin, end);
}

// Times count backwards: the earlier, the larger.
std::vector<DeviceSpan> spans_of(const DeviceStep& step, Duration ended_ago,
                                 const std::function<bool(LayerId layer)>& leaves) {
  using Task = DeviceSpan::Task;
  const auto ago = [&](const c10::Event& event) {
    return ended_ago + time_between(event, step.end());
  };
  std::vector<DeviceSpan> spans;
  const Duration turn = ago(step.forward_end);
  Duration next = turn;
  for (std::size_t i = step.forward_order.size(); i-- > 0;) {
    const LayerId layer = step.forward_order[i];
    const DeviceTrail& trail = step.trails[layer.index()];
    const Duration reached = ago(trail.reached);
    const LayerId brought_with = trail.brought_with.value_or(layer);
    const Duration in_end =
        trail.brought_with ? ago(step.trails[brought_with.index()].in_end) : reached;
    const Duration begun = std::min(reached, in_end);
    if (trail.brought_with == layer) {
      spans.push_back({layer, Task::kCopyIn, ago(trail.in_begin), in_end});
    }
    spans.push_back({layer, Task::kForward, begun, std::exchange(next, reached)});
    if (reached - begun >= kShortestWait) {
      spans.push_back({layer, Task::kWait, reached, begun});
    }
  }
  std::reverse(spans.begin(), spans.end());
  Duration since = turn;
  Duration left = turn;
  for (const LayerId layer : step.backward_order) {
    const Duration ready = ago(step.trails[layer.index()].ready);
    const Duration out_end = ago(step.trails[layer.index()].out_end);
    spans.push_back({layer, Task::kBackward, std::exchange(since, ready), ready});
    if (leaves(layer)) {
      spans.push_back({layer, Task::kCopyOut, std::min(ready, left), out_end});
    }
    left = out_end;
  }
  return spans;
}

}  // namespace sluice
