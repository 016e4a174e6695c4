#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "drivers/realtime/alarm.h"

namespace sluice {

// Waits for sockets. It tells once when a socket has become readable or writable: whoever hears of
// it must go on until a call would block.
class Poller final : public Alarm {
 public:
  struct Ready {
    std::size_t index;  // of the socket, as given to watch()
    bool reads;
    bool writes;
  };

  Poller();
  ~Poller() override;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void watch(int socket, std::size_t index, bool reads, bool writes);

  void sleep(Duration limit) override;
  void wake() override;

  // For the thread that sleeps: what has become ready since the last call, without waiting.
  const std::vector<Ready>& ready();

 private:
  void wait(Duration limit);

  int queue_;
  int awoken_;  // an event
  std::vector<Ready> found_;
  std::vector<Ready> told_;
};

}  // namespace sluice
