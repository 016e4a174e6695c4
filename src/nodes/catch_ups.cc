#include "nodes/catch_ups.h"

#include <algorithm>

namespace sluice {

CatchUps find_catch_ups(const std::map<NodeId, std::vector<Iteration>>& last_sums,
                        std::span<const std::int64_t> fragments, const Cadence& cadence,
                        Iteration next) {
  CatchUps catch_ups;
  for (std::size_t c = 0; c < fragments.size(); ++c) {
    const auto last_of = [&](const auto& of) { return of.second.at(c); };
    const auto ahead = std::ranges::max_element(last_sums, {}, last_of);
    if (const Iteration begun = cadence.under_way_at(next, fragments[c]); last_of(*ahead) < begun) {
      catch_ups.given_up.push_back({ChunkId(c), begun});
    }
    for (const auto& of : last_sums) {
      if (last_of(of) < last_of(*ahead)) {
        catch_ups.all.push_back({of.first, ahead->first, ChunkId(c), last_of(*ahead)});
      }
    }
  }
  return catch_ups;
}

}  // namespace sluice
