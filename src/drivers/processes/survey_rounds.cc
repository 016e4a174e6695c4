#include "drivers/processes/survey_rounds.h"

#include <algorithm>
#include <set>

namespace sluice {

std::vector<std::vector<RankPair>> survey_rounds(std::span<const RankPair> pairs,
                                                 std::span<const std::string> machines) {
  std::vector<std::vector<RankPair>> rounds;
  std::vector<std::set<std::string>> busy;  // by round
  for (const RankPair& pair : pairs) {
    const std::string& one = machines[pair.first];
    const std::string& other = machines[pair.second];
    const auto free = std::ranges::find_if(
        busy, [&](const auto& taken) { return !taken.contains(one) && !taken.contains(other); });
    const auto round = static_cast<std::size_t>(free - busy.begin());
    if (round == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[round].push_back(pair);
    busy[round].insert({one, other});
  }
  return rounds;
}

}  // namespace sluice
