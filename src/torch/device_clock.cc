#include "torch/device_clock.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "torch/event_time.h"

namespace sluice {
namespace {

// Waits for the stream at every mark. On a CPU that takes no time: an operator returns when it is
// done.
class WaitingClock final : public DeviceClock {
 public:
  WaitingClock(c10::Stream stream, std::function<double()> seconds)
      : stream_(stream), seconds_(std::move(seconds)) {}

  void mark() override {
    if (!stream_.device().is_cpu()) {
      stream_.synchronize();
    }
    marks_.push_back(seconds_());
  }

  std::vector<double> collect() override {
    std::vector<double> marks = std::exchange(marks_, {});
    for (std::size_t i = marks.size(); i-- > 0;) {
      marks[i] -= marks.front();
    }
    return marks;
  }

 private:
  c10::Stream stream_;
  std::function<double()> seconds_;
  std::vector<double> marks_;
};

template <class Event>
class EventClock final : public DeviceClock {
 public:
  explicit EventClock(c10::Stream stream) : stream_(stream) {}

  void mark() override {
    marks_.emplace_back(stream_.device_type(), c10::EventFlag::BACKEND_DEFAULT);
    marks_.back().record(stream_);
  }

  std::vector<double> collect() override {
    stream_.synchronize();
    std::vector<double> seconds;
    for (const Event& mark : marks_) {
      seconds.push_back(marks_.front().elapsedTime(mark) * 1e-3);
    }
    marks_.clear();
    return seconds;
  }

 private:
  c10::Stream stream_;
  std::vector<Event> marks_;
};

template <class Event>
std::unique_ptr<DeviceClock> clock_on(c10::Stream stream, std::function<double()> seconds) {
  if constexpr (TellsTime<Event>) {
    if (!stream.device().is_cpu()) {
      return std::make_unique<EventClock<Event>>(stream);
    }
  }
  return std::make_unique<WaitingClock>(stream, std::move(seconds));
}

}  // namespace

std::unique_ptr<DeviceClock> make_device_clock(c10::Device device,
                                               std::function<double()> seconds) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return clock_on<c10::Event>(guard.getStream(device), std::move(seconds));
}

}  // namespace sluice
