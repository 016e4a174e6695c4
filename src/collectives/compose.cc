#include "collectives/compose.h"

#include <bit>

namespace sluice {
namespace {

Round backwards(const Round& round) { return {round.receive, round.send, false}; }

}  // namespace

std::optional<Transfer> transfer(std::size_t peer, Range range) {
  if (range.empty()) {
    return std::nullopt;
  }
  return Transfer{peer, range};
}

Plan there_and_back(Plan reduction) {
  const std::size_t there = reduction.size();
  reduction.reserve(2 * there);
  for (std::size_t i = there; i-- > 0;) {
    Round back = backwards(reduction[i]);
    back.together = i + 1 < there && reduction[i + 1].together;
    reduction.push_back(back);
  }
  return reduction;
}

Plan fold_to_power_of_two(std::size_t rank, std::size_t size, Range whole, CorePlan core) {
  const std::size_t power = std::bit_floor(size);
  if (power == size) {
    return core(rank, size, whole);
  }
  const bool sits_out = rank >= power;
  Round fold{.reduce = true};
  if (sits_out) {
    fold.send = transfer(rank - power, whole);
  } else if (rank + power < size) {
    fold.receive = transfer(rank + power, whole);
  }
  Plan plan = core(sits_out ? rank - power : rank, power, whole);
  if (sits_out) {
    plan.assign(plan.size(), Round{});
  }
  plan.insert(plan.begin(), fold);
  plan.push_back(backwards(fold));
  if (!sits_out && !plan.back().send.has_value() && !whole.empty()) {
    plan.back().shared = whole;
  }
  return plan;
}

}  // namespace sluice
