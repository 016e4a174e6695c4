#pragma once

#include <signal.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace sluice {

// While this object exists, these signals go to the handler; those that the process was started to
// ignore stay ignored. A handler rather than a mask, because libraries may have started threads
// without the mask.
class SignalHandlers {
 public:
  using Handler = void (*)(int signal);

  SignalHandlers(std::initializer_list<int> signals, Handler handler) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int signal : signals) {
      struct sigaction before {};
      sigaction(signal, nullptr, &before);
      if (before.sa_handler != SIG_IGN) {
        sigaction(signal, &action, nullptr);
        before_.emplace_back(signal, before);
      }
    }
  }
  ~SignalHandlers() {
    for (const auto& [signal, action] : before_) {
      sigaction(signal, &action, nullptr);
    }
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace sluice
