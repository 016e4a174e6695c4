#include "session/history.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice {

nlohmann::ordered_json json_of(const History& history) {
  auto losses = nlohmann::ordered_json::array();
  for (const LostRank& loss : history.losses) {
    losses.push_back(
        {{"rank", loss.rank}, {"life", loss.life}, {"after_s", loss.after_s}, {"why", loss.why}});
  }
  auto regrouped = nlohmann::ordered_json::array();
  for (const Regrouped& one : history.regrouped) {
    regrouped.push_back({{"iteration", one.iteration}, {"workers", one.workers}});
  }
  return {{"losses", losses}, {"joined_ranks", history.joined}, {"regrouped", regrouped}};
}

History history_from(const nlohmann::json& json) {
  History history{.losses = {}, .joined = json.at("joined_ranks"), .regrouped = {}};
  for (const auto& one : json.at("losses")) {
    history.losses.push_back({one.at("rank"), one.at("life"), one.at("after_s"), one.at("why")});
  }
  for (const auto& one : json.at("regrouped")) {
    history.regrouped.push_back({one.at("iteration"), one.at("workers")});
  }
  return history;
}

void add_losses(const ProcessGroup& group, Time now, History& history) {
  for (const PeerLoss& loss : group.losses()) {
    const bool is_known = std::ranges::any_of(history.losses, [&](const LostRank& known) {
      return known.rank == loss.rank && known.life == loss.life;
    });
    if (!is_known) {
      history.losses.push_back({loss.rank, loss.life, to_seconds(now - loss.ago), loss.why});
    }
  }
}

}  // namespace sluice
