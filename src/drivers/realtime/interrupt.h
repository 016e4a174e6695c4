#pragma once

#include <optional>
#include <string>

#include "drivers/realtime/signal_handlers.h"

namespace sluice {

// A wish from outside that the process should come to its end: while this stands, the first SIGINT
// or SIGTERM is only noted, and a second one ends the process at once. What comes within a fifth of
// a second of the first is taken for the same wish, since timeout(1), for one, sends it twice. That
// nobody reads any more what the process says (SIGPIPE) does not end it either: a launcher that was
// interrupted may close its ends first. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that came first; 0 if there was none. From any thread.
  int signal() const;

 private:
  std::optional<SignalHandlers> handlers_;
  std::optional<SignalHandlers> deaf_;
};

// "SIGTERM".
std::string signal_name(int signal);

}  // namespace sluice
