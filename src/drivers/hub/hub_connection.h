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
#include <utility>
#include <vector>

#include "drivers/hub/hub.h"
#include "drivers/hub/waking_clock.h"
#include "drivers/processes/letters.h"
#include "drivers/processes/peer_loss.h"

namespace sluice {

// The connection of a process with the hub of its run. A thread of its own keeps it alive, so
// that a process that is at work does not count as lost. Without the hub the process is of no use
// to the others: it ends itself soon, if nobody asks for the fault before.
class HubConnection {
 public:
  // `joins`: a run that goes on without this rank, see Hub.
  static Result<std::unique_ptr<HubConnection>> open(const HubAddress& hub, std::size_t rank,
                                                     bool joins = false);
  // Leaves: the hub hears of it.
  ~HubConnection();
  HubConnection(const HubConnection&) = delete;
  HubConnection& operator=(const HubConnection&) = delete;

  // The address of this machine that the connection uses.
  std::string own_address() const;

  // Texts of different channels do not wait for each other. Nothing is sent to a rank that is lost.
  void send(std::size_t to, std::uint32_t channel, std::string text);
  // See HubFrame::Kind::kToAll, and kAdmit.
  void send_to_all(std::uint32_t channel, const std::string& text);
  void send_admission(std::uint32_t channel, const std::string& text);
  // The next text of a channel, or that a rank was lost; what was lost before comes first.
  std::optional<Letters::Letter> take(std::uint32_t channel);
  bool all_sent() const;
  // Why a rank was lost; empty: it was not, or has been let in again since.
  std::string why_lost(std::size_t rank) const;
  // All losses that the hub has told of, since the connection was opened.
  std::vector<PeerLoss> losses() const;
  // What is wrong with the connection; empty: nothing.
  std::string fault() const;

  // See HubFrame::Kind.
  void cut_off(std::size_t rank);
  void outlive(const std::string& ranks);
  void tell_joiners(const std::string& beginning);
  // In a process that joins: what rank 0 wants it to know, once that has come; and that it is ready
  // to be let in.
  std::optional<std::string> beginning() const;
  void ready();
  // The ranks that are ready, each with the life that it is in.
  Lives joiners() const;
  // This rank counts again, in this life, unless it has been lost in it. All who count in the run
  // do this once they get its admission.
  void admit(std::size_t rank, std::uint32_t life);
  // All processes should end. Returns when the hub has been told, if it can be.
  void fail(int code);

 private:
  HubConnection(Socket socket, std::size_t rank, const std::string& token, bool joins);

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
  bool is_lost(std::size_t rank) const;

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
  struct Loss {
    std::uint32_t life;
    std::string why;
  };
  std::map<std::size_t, Loss> lost_;               // the last of each rank
  std::vector<std::pair<Time, PeerLoss>> losses_;  // all
  Lives lives_;                                    // of those that were let in again
  Lives joiners_;                                  // see joiners()
  std::optional<std::string> beginning_;
  std::string fault_;
  std::optional<Time> fault_since_;
  std::jthread thread_;
};

}  // namespace sluice
