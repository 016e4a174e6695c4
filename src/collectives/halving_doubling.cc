#include "collectives/halving_doubling.h"

#include <utility>

#include "collectives/compose.h"

namespace sluice {
namespace {

// Each rank is responsible for a range, at first the whole. In each round, partners with the same
// range split it: each keeps one half, adds the partner's data there, and gives the other half
// away. In the end each rank has the sum of its own n-th part; the way back collects the parts.
//
//   n = 4          rank 0   rank 1   rank 2   rank 3
//   distance 2     AB       AB       CD       CD        with partner r xor 2
//   distance 1     A        B        C        D         with partner r xor 1
Plan halving(std::size_t rank, std::size_t size, Range whole) {
  Plan plan;
  Range mine = whole;
  for (std::size_t distance = size / 2; distance > 0; distance /= 2) {
    const std::size_t partner = rank ^ distance;
    Range keep = part_of(mine, 2, 0);
    Range give = part_of(mine, 2, 1);
    if (rank > partner) {
      std::swap(keep, give);
    }
    plan.push_back({transfer(partner, give), transfer(partner, keep), true});
    mine = keep;
  }
  return there_and_back(std::move(plan));
}

}  // namespace

Plan halving_doubling(std::size_t rank, std::size_t size, Range whole) {
  return fold_to_power_of_two(rank, size, whole, halving);
}

}  // namespace sluice
