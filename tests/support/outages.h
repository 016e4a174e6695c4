#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/id.h"
#include "wire/lost_peer.h"

namespace sluice::testing {

// What is wrong in a ShuffledWorld: hosts that are gone, and what stands still for a while.
class Outages {
 public:
  // A host that will hear of a lost one.
  struct Notice {
    HostId host;
    HostId lost;
    double haste;
  };

  // ---- For good -------------------------------------------------------------------------------

  void kill(HostId host) { dead_.push_back(host); }
  // It is there again, and nobody has heard of another loss yet.
  void revive(HostId host) {
    std::erase(dead_, host);
    std::erase_if(told_, [&](const auto& of) { return of.second == host; });
  }
  bool is_dead(HostId host) const { return std::ranges::find(dead_, host) != dead_.end(); }
  // The host has heard of the lost one, and has ended with this error if there is one.
  void tell(HostId host, HostId lost, std::optional<LostPeer> error) {
    told_.emplace_back(host, lost);
    if (error) {
      errors_.emplace_back(host, *std::move(error));
    }
  }
  bool knows(HostId host, HostId lost) const {
    return std::ranges::find(told_, std::pair(host, lost)) != told_.end();
  }
  bool has_ended(HostId host) const {
    return std::ranges::any_of(errors_, [&](const auto& of) { return of.first == host; });
  }
  // Neither computes nor handles events any more.
  bool is_out(HostId host) const { return !dead_.empty() && (is_dead(host) || has_ended(host)); }
  bool is_moving(HostId host) const { return !is_out(host) && !is_stopped(host); }
  // Nothing is wrong.
  bool none() const { return dead_.empty() && !stopped_ && !cut_ && !deaf_; }
  const std::vector<std::pair<HostId, LostPeer>>& errors() const { return errors_; }

  // ---- For a while ----------------------------------------------------------------------------

  void stop(HostId host) { stopped_ = host; }
  // No message passes between the two.
  void cut(HostId one, HostId other) { cut_ = {one, other}; }
  // No control message reaches the host: neither messages without a payload nor confirmations nor
  // the loss of another host.
  void delay(HostId host) { deaf_ = host; }
  bool is_stopped(HostId host) const { return stopped_ == host; }
  bool is_cut(HostId from, HostId to) const {
    return cut_ && (*cut_ == std::pair(from, to) || *cut_ == std::pair(to, from));
  }
  bool is_deaf(HostId host) const { return deaf_ == host; }
  // True if there was something to end.
  bool end() {
    const bool had = stopped_ || cut_ || deaf_;
    stopped_.reset();
    cut_.reset();
    deaf_.reset();
    return had;
  }

 private:
  std::vector<HostId> dead_;
  std::vector<std::pair<HostId, HostId>> told_;
  std::vector<std::pair<HostId, LostPeer>> errors_;
  std::optional<HostId> stopped_;
  std::optional<std::pair<HostId, HostId>> cut_;
  std::optional<HostId> deaf_;  // to control messages
};

}  // namespace sluice::testing
