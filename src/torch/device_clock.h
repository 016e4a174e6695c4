#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <vector>

namespace sluice {

// Notes moments in the work of a device while it is handed out, which may be long before it is
// done.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;

  // The moment at which all is done that this thread has asked of the device so far.
  virtual void mark() = 0;
  // Seconds from the first mark to each of them, in the order of the calls; waits until the device
  // has come to the last one. Forgets them all.
  virtual std::vector<double> collect() = 0;
};

// A clock for this device; `seconds` tells the time of the host. Where the device has a queue of
// its own, its events are marks; a LibTorch that cannot tell the time between events waits for the
// device at every mark instead, which takes away what passes overlap.
std::unique_ptr<DeviceClock> make_device_clock(c10::Device device, std::function<double()> seconds);

}  // namespace sluice
