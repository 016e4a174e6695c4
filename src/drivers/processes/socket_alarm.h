#pragma once

#include <cstdint>
#include <memory>

#include "drivers/realtime/alarm.h"
#include "drivers/realtime/clock.h"

namespace sluice {

// An alarm that also goes off when a TCP connection of this process has data to read, or room
// again after a write that did not fit. Whoever owns the connections reads and writes them; the
// alarm only looks.
class SocketAlarm final : public Alarm {
 public:
  SocketAlarm();
  ~SocketAlarm() override;
  SocketAlarm(const SocketAlarm&) = delete;
  SocketAlarm& operator=(const SocketAlarm&) = delete;

  // A connection that is closed is forgotten.
  void watch(int socket);
  // Whether the kernel can do all this.
  bool works() const { return works_; }

  void sleep(Duration limit) override;
  void wake() override;

  // The two that follow are for the thread that sleeps.

  // Whether it is time to read and write: a connection calls for it, or the last sleep was as long
  // as it may be.
  bool calls();
  // Do not listen to the connections for this long.
  void pause(Duration time) { paused_until_ = clock_.now() + time; }

 private:
  void add(int queue, int descriptor, std::uint32_t events);
  bool pass_pause();
  bool wait(Duration limit);

  int queue_;   // of connections with data, and of:
  int rooms_;   // a queue of connections with room again
  int awoken_;  // an event
  Clock clock_;
  Time paused_until_{0};
  bool calls_ = false;
  bool works_ = true;
};

// An alarm for all TCP connections that this process now has with other machines. Null if they lead
// to fewer than this number of addresses, or if the kernel cannot do it.
std::shared_ptr<SocketAlarm> watch_sockets(std::size_t addresses);

}  // namespace sluice
