#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "drivers/hub/hub_connection.h"

namespace sluice {

// The texts of one channel, by rank, and who leads those that wait for them.
class HubTexts {
 public:
  // `leader`: as many as there are ranks, if it is not known yet.
  HubTexts(HubConnection& connection, std::uint32_t channel, std::size_t ranks, std::size_t leader)
      : connection_(connection), channel_(channel), texts_(ranks), leader_(leader) {}

  // Takes what has come so far.
  void take_all();
  bool has(std::size_t from) const { return !texts_[from].empty(); }
  std::string next(std::size_t from);
  bool is_lost(std::size_t rank) const { return !connection_.why_lost(rank).empty(); }
  // It counts again: what its predecessor has sent is for nobody.
  void count_in(std::size_t rank);

  // Who leads, by all that is known of losses.
  std::size_t leader() const;
  // Who led when all last heard a text of a leader.
  std::size_t last_leader() const { return leader_; }
  void lead(std::size_t rank) { leader_ = rank; }
  // The last leader is lost, and has sent all its texts. Whoever leads now may be lost, too, but
  // may have sent one before.
  void take_next_leader(std::size_t own);

 private:
  HubConnection& connection_;
  const std::uint32_t channel_;
  std::vector<std::deque<std::string>> texts_;  // by rank, that have come and were not taken
  std::set<std::size_t> gone_;                  // who was lost, and has sent nothing since
  std::size_t leader_;
};

}  // namespace sluice
