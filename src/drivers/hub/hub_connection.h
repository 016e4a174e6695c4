#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drivers/hub/hub.h"
#include "drivers/hub/waking_clock.h"
#include "drivers/processes/letters.h"

namespace sluice {

// The connection of a process with the hub of its run. A thread of its own keeps it alive, so
// that a process that is at work does not count as lost. Without the hub the process is of no use
// to the others: it ends itself soon, if nobody asks for the fault before.
class HubConnection {
 public:
  static Result<std::unique_ptr<HubConnection>> open(const HubAddress& hub, std::size_t rank);
  // Leaves: the hub hears of it.
  ~HubConnection();
  HubConnection(const HubConnection&) = delete;
  HubConnection& operator=(const HubConnection&) = delete;

  // The address of this machine that the connection uses.
  std::string own_address() const;

  // Texts of different channels do not wait for each other.
  void send(std::size_t to, std::uint32_t channel, std::string text);
  // The next text of a channel, or that a rank was lost; what was lost before comes first.
  std::optional<Letters::Letter> take(std::uint32_t channel);
  bool all_sent() const;
  // Why a rank was lost; empty: it was not.
  std::string why_lost(std::size_t rank) const;
  // What is wrong with the connection; empty: nothing.
  std::string fault() const;

  // See HubFrame::Kind.
  void outlive(const std::string& ranks);
  // All processes should end. Returns when the hub has been told, if it can be.
  void fail(int code);

 private:
  HubConnection(Socket socket, std::size_t rank, const std::string& token);

  void run();
  void serve_line();
  void end_if_forsaken() const;
  void take(const HubFrame& frame);
  void sleep() const;
  void wake() const;
  void post(const HubFrame& frame);
  // Waits until all has left, but not for long.
  void flush() const;
  std::deque<Letters::Letter>& channel(std::uint32_t number);

  const std::size_t rank_;
  const std::string own_address_;
  const int awoken_;  // an event that ends the sleep
  const Clock clock_;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;  // of all below
  HubLine line_;
  WakingClock awake_;  // for the silence of the hub
  Time heard_{0};      // on it
  Time next_beat_{0};
  std::map<std::uint32_t, std::deque<Letters::Letter>> channels_;
  std::map<std::size_t, std::string> lost_;
  std::string fault_;
  std::optional<Time> fault_since_;
  std::jthread thread_;
};

}  // namespace sluice
