#include "drivers/hub/cuts.h"

#include <algorithm>
#include <map>

namespace sluice {
namespace {

// Both ends tell the hub, and somebody whose connections have all broken tells it several times.
const Duration kToTell = from_us(5e5);

}  // namespace

void Cuts::add(std::size_t one, std::size_t other, Time now) {
  const std::pair<std::size_t, std::size_t> cut = std::minmax(one, other);
  if (std::ranges::find(all_, cut) == all_.end()) {
    since_ = all_.empty() ? now : since_;
    all_.push_back(cut);
  }
}

void Cuts::forget(std::size_t rank) {
  std::erase_if(all_, [&](const auto& cut) { return cut.first == rank || cut.second == rank; });
}

std::optional<Cuts::Verdict> Cuts::settle(
    Time now, const std::function<bool(std::size_t rank)>& is_outlived) const {
  if (all_.empty() || now - since_ < kToTell) {
    return std::nullopt;
  }
  std::map<std::size_t, std::size_t> broken;  // by rank, of those that can be given up
  for (const auto& [one, other] : all_) {
    if (!is_outlived(one) && !is_outlived(other)) {
      return Verdict{.rank = other, .other = one, .ends = true};
    }
    for (const std::size_t rank : {one, other}) {
      broken[rank] += is_outlived(rank) ? 1 : 0;
    }
  }
  const auto worse = [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  };
  const std::size_t rank = std::ranges::max_element(broken, worse)->first;
  const auto cut = std::ranges::find_if(
      all_, [&](const auto& pair) { return pair.first == rank || pair.second == rank; });
  return Verdict{.rank = rank, .other = cut->first == rank ? cut->second : cut->first};
}

}  // namespace sluice
