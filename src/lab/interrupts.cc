#include "lab/interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/check.h"

namespace sluice::lab {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// A signal handler can reach only static objects.
volatile std::sig_atomic_t write_end = -1;

void note(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  (void)!write(write_end, &byte, 1);
  errno = saved;
}

}  // namespace

Interrupts::Interrupts() {
  check(write_end < 0, "only one Interrupts exists at a time");
  std::array<int, 2> ends{};
  check(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, "a pipe can be created");
  read_end_ = ends[0];
  write_end = ends[1];
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) {
      sigaction(signal, &action, nullptr);
      before_.emplace_back(signal, before);
    }
  }
}

Interrupts::~Interrupts() {
  for (const auto& [signal, before] : before_) {
    sigaction(signal, &before, nullptr);
  }
  close(write_end);
  close(read_end_);
  write_end = -1;
}

int Interrupts::take() const {
  unsigned char signal = 0;
  return read(read_end_, &signal, 1) == 1 ? signal : 0;
}

}  // namespace sluice::lab
