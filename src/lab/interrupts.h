#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace sluice::lab {

// Makes SIGINT (Ctrl-C), SIGTERM and SIGHUP something to poll: while this object exists, they do
// not end the process. Signals that were ignored before, as under nohup, stay ignored. One at a
// time. A handler rather than a mask, because libraries may have started threads without the mask.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Readable when a signal has come.
  int fd() const { return read_end_; }
  // The first signal that was not taken yet; 0 if there is none.
  int take() const;

 private:
  int read_end_ = -1;
  std::vector<std::pair<int, struct sigaction>> before_;  // of the signals that are watched
};

}  // namespace sluice::lab
