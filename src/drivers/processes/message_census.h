#pragma once

#include <optional>
#include <utility>

#include "drivers/realtime/peer_transport.h"

namespace sluice {

// Finds out whether anything is in flight between processes that send nothing on their own: a
// message may bring about others, and the processes are asked one after the other. They are asked
// in rounds, and each answers when it has nothing to do. If as many messages were received as sent,
// and it was the same in the round before, nothing was in flight in between, nor is anything since
// (Mattern's four counters).
class MessageCensus {
 public:
  explicit MessageCensus(int processes) : processes_(processes) {}

  // A process answers. None: others have not; else whether nothing is in flight. If something may
  // be, the next round begins.
  std::optional<bool> add(const MessageCount& of_one) {
    now_.sent += of_one.sent;
    now_.received += of_one.received;
    if (++answers_ < processes_) {
      return std::nullopt;
    }
    answers_ = 0;
    const MessageCount all = std::exchange(now_, {});
    const bool same = std::exchange(before_, all) == all;
    return same && all.sent == all.received;
  }

 private:
  int processes_;
  int answers_ = 0;
  MessageCount now_;
  std::optional<MessageCount> before_;
};

}  // namespace sluice
