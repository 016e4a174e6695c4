#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/range.h"
#include "model/strategy.h"

namespace sluice {

// Collectives are data: a plan says whom a rank talks to and about what; a runner does the talking.
//
//   rank      one of `size` participants, 0 ... size-1
//   whole     the range of the flat buffer that is to be summed over all ranks
//   round     at most one message out and at most one in, side by side
//   plan      the rounds of one rank, in order
//
// The plans of all ranks have equally many rounds, and round i of one belongs to round i of every
// other: what a sends to b there is exactly what b receives from a. A rank sends its data as of the
// start of the round, and begins the next round when both messages of this one are through. After
// the last round every rank holds the same sum, bit for bit.

// Never empty: where there is nothing to move there is no transfer on either side.
struct Transfer {
  std::size_t peer = 0;
  Range range;

  bool operator==(const Transfer&) const = default;
};

struct Round {
  std::optional<Transfer> send = {};
  std::optional<Transfer> receive = {};
  bool reduce = false;  // what arrives is added, not copied; the same on both ends of a transfer
  // Others hand on here what this rank holds too. Where that loses something on the way, this rank
  // loses the same.
  std::optional<Range> shared = {};

  bool operator==(const Round&) const = default;
};

using Plan = std::vector<Round>;

// The all-reduce of `whole` as seen by `rank`, for any number of ranks.
Plan make_plan(Collective collective, std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
