#include "collectives/choice.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/check.h"
#include "codecs/size.h"
#include "collectives/segments.h"

namespace sluice {
namespace {

// Of collectives whose prices differ by no more than this, the one with fewer start-ups is taken:
// sums of different collectives leave more gaps on the links than sums of the same.
constexpr double kTie = 0.02;

// Where nothing overtakes, each step of a sum waits at least for a message of another sum that is
// on its way: as long as a message takes the wire (model/message_size.h).
constexpr Duration kStepAmongOthers = std::chrono::microseconds(360);

// The last sum of several begins while the ones before it still use the link: only this share of
// what it takes longer alone than among others delays the end.
constexpr double kTail = 0.5;

bool can_sum(const Strategy& strategy, Collective collective) {
  if (strategy.collective) {
    return collective == *strategy.collective;
  }
  return !strategy.travels_whole() || collective == Collective::kRecursiveDoubling;
}

}  // namespace

CollectiveChoice::CollectiveChoice(const Job& job)
    : strategy_(job.strategy.of_sums()),
      ranks_(ranks_of(job)),
      link_(job.link),
      threads_(job.server_threads) {
  for (const Collective collective : kPlannedCollectives) {
    if (can_sum(strategy_, collective)) {
      candidates_.emplace_back(collective, load_of(collective, ranks_));
    }
  }
  check(!candidates_.empty(), "a driver's own sum needs no choice");
  std::ranges::stable_sort(candidates_, {},
                           [](const auto& candidate) { return candidate.second.total.startups; });
}

// What the sum delays those that follow.
double CollectiveChoice::among_others_us(const PlanLoad& load, const SumCost& cost) const {
  const bool waits = strategy_.order != Order::kPriority;
  return to_us(cost.busy) + (waits ? load.total.startups * to_us(kStepAmongOthers) : 0);
}

CollectiveChoice::Choice CollectiveChoice::choose(std::int64_t params, double tail) const {
  const Bytes bytes = coded_size(strategy_, params, 1);
  const bool packs = strategy_.coded() && !strategy_.travels_whole();
  const Coding coding{.floats = packs ? params * kFloatBytes : 0, .threads = threads_};
  std::optional<Choice> best;
  double lowest = 0;
  for (const auto& [collective, load] : candidates_) {
    const std::size_t segments = segments_of(strategy_, collective, ranks_.size, params);
    const SumCost cost = sum_cost(load, link_, bytes, segments, coding);
    const double price = (1 - tail) * among_others_us(load, cost) + tail * to_us(cost.alone);
    if (!best || price < (1 - kTie) * lowest) {
      best = {collective, cost};
      lowest = price;
    }
  }
  return *best;
}

std::vector<Collective> collectives_for(const Job& job, const ChunkMap& chunks) {
  if (job.strategy.driver_sums()) {
    return std::vector(chunks.size(), *job.strategy.collective);
  }
  const CollectiveChoice choice(job);
  const auto first_layer = [&](const Chunk& chunk) {
    return chunk.priority == chunks.all().front().priority;
  };
  const auto last = static_cast<double>(std::ranges::count_if(chunks.all(), first_layer));
  const auto all = static_cast<double>(chunks.size());
  std::vector<Collective> collectives;
  for (const Chunk& chunk : chunks.all()) {
    const double tail = (all > last ? kTail : 1) / (first_layer(chunk) ? last : all);
    collectives.push_back(choice.choose(chunk.range.size(), tail).collective);
  }
  return collectives;
}

}  // namespace sluice
