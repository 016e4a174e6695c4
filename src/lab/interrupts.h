#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace sluice::lab {

// Ctrl-C and its likes (SIGINT, SIGTERM, SIGHUP) as something to poll: while this stands, they do
// not end the process. What was ignored before, as under nohup, stays ignored. One at a time. A
// handler rather than a mask, because libraries may have started threads that know nothing of the
// mask.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Readable when a signal has come.
  int fd() const { return read_end_; }
  // The signal that came first and was not taken yet; 0 if there is none.
  int take() const;

 private:
  int read_end_ = -1;
  std::vector<std::pair<int, struct sigaction>> before_;  // of the signals that are watched
};

}  // namespace sluice::lab
