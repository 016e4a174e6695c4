#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <vector>

namespace sluice {

// Marks points in the work of a device as the work is submitted, possibly long before it runs.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;

  // Marks the moment when the device has done everything that this thread has submitted so far.
  virtual void mark() = 0;
  // Seconds from the first mark to each mark, in the order of the calls. Waits until the device has
  // reached the last one, then forgets all of them.
  virtual std::vector<double> collect() = 0;
};

// A clock for this device; `seconds` is the clock of the host. If the device has a queue, marks are
// events in it. A LibTorch that cannot measure the time between events waits for the device at
// every mark instead, so that the passes no longer overlap.
std::unique_ptr<DeviceClock> make_device_clock(c10::Device device, std::function<double()> seconds);

}  // namespace sluice
