#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace sluice {

// Short texts between the processes of a phase, beside the messages of training. Those from one
// process to another arrive in order. All calls come from one thread, and none of them waits.
class Letters {
 public:
  struct Letter {
    std::size_t from;
    // None: this rank was lost. Nothing follows from it, and whatever others send once they know
    // follows this.
    std::optional<std::string> text;
  };

  virtual ~Letters() = default;

  virtual void send(std::size_t to, std::string text) = 0;
  // To all others. Where processes may be lost: all get it, or nobody does, and all at the same
  // place between the losses that they hear of.
  virtual void send_to_all(const std::string& text) = 0;
  virtual std::optional<Letter> take() = 0;
  // Whether all that was sent has left; call this now and then until it has.
  virtual bool all_sent() = 0;
  // Nothing is on its way to anybody, and nothing will be sent any more. Without this call what is
  // on its way is abandoned.
  virtual void close() = 0;
};

}  // namespace sluice
