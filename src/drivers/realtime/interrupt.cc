#include "drivers/realtime/interrupt.h"

#include <time.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace sluice {
namespace {

// A signal handler can reach only static objects.
std::atomic<bool> interrupt_stands{false};
std::atomic<int> first_signal{0};
std::atomic<long> first_ms{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<long>::is_always_lock_free);

long now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000L + now.tv_nsec / 1'000'000;
}

void note_interrupt(int signal) {
  constexpr long kSameMs = 200;
  const int saved = errno;
  const long now = now_ms();
  long never = 0;
  if (first_ms.compare_exchange_strong(never, now)) {
    first_signal = signal;
  } else if (now - first_ms > kSameMs) {
    ::signal(signal, SIG_DFL);
    raise(signal);  // takes effect when the handler returns
  }
  errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
  check(!interrupt_stands.exchange(true), "only one Interrupt exists at a time");
  first_ms = 0;
  first_signal = 0;
  handlers_.emplace(std::initializer_list<int>{SIGINT, SIGTERM}, note_interrupt);
  deaf_.emplace(std::initializer_list<int>{SIGPIPE}, SIG_IGN);
}

Interrupt::~Interrupt() {
  handlers_.reset();
  interrupt_stands = false;
}

int Interrupt::signal() const { return first_signal; }

std::string signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
  }
  return "signal " + std::to_string(signal);
}

}  // namespace sluice
