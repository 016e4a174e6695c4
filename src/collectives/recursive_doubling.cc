#include "collectives/recursive_doubling.h"

#include "collectives/compose.h"

namespace sluice {
namespace {

// Partners exchange all they have, and both add. After the round with distance d, the 2d ranks that
// differ only in the bits up to d hold the same partial sum:
//
//   distance 1:   0-1  2-3  4-5  6-7
//   distance 2:   0-2  1-3  4-6  5-7
//   distance 4:   0-4  1-5  2-6  3-7
Plan doubling(std::size_t rank, std::size_t size, Range whole) {
  Plan plan;
  for (std::size_t distance = 1; distance < size; distance *= 2) {
    const std::size_t partner = rank ^ distance;
    plan.push_back({transfer(partner, whole), transfer(partner, whole), true});
  }
  return plan;
}

}  // namespace

Plan recursive_doubling(std::size_t rank, std::size_t size, Range whole) {
  return fold_to_power_of_two(rank, size, whole, doubling);
}

}  // namespace sluice
