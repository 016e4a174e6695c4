#include "collectives/binary_tree.h"

#include <utility>

#include "collectives/compose.h"

namespace sluice {

// Distance 1, 2, 4, ...: every second of the remaining ranks sends its sum to the one before it and
// drops out. Rank 0 ends with the whole sum; the way back distributes it.
//
//   n = 6, distance 1:   0 <- 1   2 <- 3   4 <- 5
//          distance 2:   0 <- 2            4
//          distance 4:   0 <- 4
Plan binary_tree(std::size_t rank, std::size_t size, Range whole) {
  Plan plan;
  for (std::size_t distance = 1; distance < size; distance *= 2) {
    Round round{.reduce = true};
    if (rank % (2 * distance) == distance) {
      round.send = transfer(rank - distance, whole);
    } else if (rank % (2 * distance) == 0 && rank + distance < size) {
      round.receive = transfer(rank + distance, whole);
    }
    plan.push_back(round);
  }
  return there_and_back(std::move(plan));
}

}  // namespace sluice
