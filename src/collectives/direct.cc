#include "collectives/direct.h"

#include <cstdint>
#include <utility>

#include "collectives/compose.h"

namespace sluice {

// Rank r begins with rank r+1, then r+2 and so on, so that each receives from one at a time.
//
//   n = 4      rank 0 sends     rank 1 sends     rank 2 sends     rank 3 sends
//   round 0    part 1 to 1      part 2 to 2      part 3 to 3      part 0 to 0      added
//   round 1    part 2 to 2      part 3 to 3      part 0 to 0      part 1 to 1      added
//   round 2    part 3 to 3      part 0 to 0      part 1 to 1      part 2 to 2      added
//   round 3    part 0 to 1      part 1 to 2      part 2 to 3      part 3 to 0      copied
//   ...                                                    rounds 0 to 2 are a step, 3 to 5 another
Plan direct(std::size_t rank, std::size_t size, Range whole) {
  const auto part = [&](std::size_t owner) {
    return part_of(whole, static_cast<std::int64_t>(size), static_cast<std::int64_t>(owner));
  };
  Plan plan;
  for (std::size_t distance = 1; distance < size; ++distance) {
    const std::size_t to = (rank + distance) % size;
    const std::size_t from = (rank + size - distance) % size;
    plan.push_back({.send = transfer(to, part(to)),
                    .receive = transfer(from, part(rank)),
                    .reduce = true,
                    .together = distance > 1});
  }
  return there_and_back(std::move(plan));
}

}  // namespace sluice
