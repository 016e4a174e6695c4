#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "model/topology.h"
#include "support/outages.h"
#include "support/pending.h"

namespace sluice::testing {

// What can happen next in a ShuffledWorld, numbered.
class Choices {
 public:
  Choices(const Topology& topology, const Pending& pending, const Outages& outages)
      : topology_(topology), pending_(pending), outages_(outages) {}

  void clear() {
    listed_.clear();
    adds_pending_ = false;
  }
  void add(const Choice& choice) { listed_.push_back(choice); }
  // What of all that is pending can happen. As long as nothing is wrong, that is all of it, and it
  // need not be listed.
  void add_pending() {
    adds_pending_ = outages_.none();
    if (!adds_pending_) {
      list_pending();
    }
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return listed_.size() + (adds_pending_ ? pending_.size() : 0); }
  Choice operator[](std::size_t number) const {
    return number < listed_.size() ? listed_[number] : pending_[number - listed_.size()];
  }

  // Draws so many rivals and returns the one with the most haste.
  Choice draw(std::size_t rivals, Random& random) const {
    const std::size_t all = size();
    Choice chosen = (*this)[random.below(all)];
    for (std::size_t i = 1; i < rivals; ++i) {
      const Choice rival = (*this)[random.below(all)];
      chosen = rival.haste > chosen.haste ? rival : chosen;
    }
    return chosen;
  }

 private:
  using Kind = Choice::Kind;

  void list_pending() {
    const auto list = [&](Kind kind, const auto& pending, const auto& can_happen) {
      for (std::size_t i = 0; i < pending.size(); ++i) {
        if (can_happen(pending[i])) {
          listed_.push_back({kind, i, pending[i].haste});
        }
      }
    };
    const auto hears = [&](HostId host) {
      return outages_.is_moving(host) && !outages_.is_deaf(host);
    };
    const auto is_heard = [&](const Confirmation& of) { return hears(host_of(of.message.from)); };
    list(Kind::kFlight, pending_.flights.all(), [&](const Flight& of) {
      const HostId to = host_of(of.message.to);
      return (of.message.payload_bytes == 0 ? hears(to) : outages_.is_moving(to)) &&
             !outages_.is_cut(host_of(of.message.from), to);
    });
    list(Kind::kSent, pending_.sent, is_heard);
    list(Kind::kReturned, *pending_.returned, is_heard);
    list(Kind::kWork, pending_.works,
         [&](const PendingWork& of) { return outages_.is_moving(host_of(of.work.node)); });
    list(Kind::kLost, pending_.notices, [&](const Outages::Notice& of) { return hears(of.host); });
  }
  HostId host_of(NodeId node) const { return topology_.host_of(node); }

  const Topology& topology_;
  const Pending& pending_;
  const Outages& outages_;
  std::vector<Choice> listed_;
  bool adds_pending_ = false;
};

}  // namespace sluice::testing
