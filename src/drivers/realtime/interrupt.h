#pragma once

#include <optional>
#include <string>

#include "drivers/realtime/signal_handlers.h"

namespace sluice {

// A request from outside to end the process. While an Interrupt exists, the first SIGINT or SIGTERM
// is only recorded, and a second one ends the process at once. Signals within a fifth of a second
// of the first count as the same request, since timeout(1), for example, sends it twice. SIGPIPE
// does not end the process either: a launcher that was interrupted may close its pipes first. One
// at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The first signal; 0 if there was none. From any thread.
  int signal() const;

 private:
  std::optional<SignalHandlers> handlers_;
  std::optional<SignalHandlers> deaf_;
};

// "SIGTERM".
std::string signal_name(int signal);

}  // namespace sluice
