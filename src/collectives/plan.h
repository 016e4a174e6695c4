#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/range.h"
#include "model/strategy.h"

namespace sluice {

// Collectives are data: a plan says which rank exchanges which range with whom; a runner does it.
//
//   rank      one of `size` participants, 0 ... size-1
//   whole     the range of the flat buffer to sum over all ranks
//   round     at most one message out and at most one in, concurrently
//   step      consecutive rounds that begin together; most steps have one round
//   plan      the rounds of one rank, in order
//
// The plans of all ranks have the same number of rounds, and their i-th rounds match: what a sends
// to b there is exactly what b receives from a. A rank sends its data as of the start of the step,
// and begins the next step when all messages of this one are complete. What a step adds belongs to
// one range, to which it adds in the order of ranks, itself included. After the last round every
// rank holds the same sum, bit for bit.

// Never empty: if there is nothing to move, neither side has a transfer.
struct Transfer {
  std::size_t peer = 0;
  Range range;

  bool operator==(const Transfer&) const = default;
};

struct Round {
  std::optional<Transfer> send = {};
  std::optional<Transfer> receive = {};
  bool reduce = false;  // add what arrives instead of copying it; equal at both ends of a transfer
  // Other ranks forward this range in this round, and this rank holds it too. If packing loses
  // something there, this rank must lose the same.
  std::optional<Range> shared = {};
  bool together = false;  // belongs to the step of the round before it; equal on all ranks

  bool operator==(const Round&) const = default;
};

using Plan = std::vector<Round>;

// The round after the last one of the step that begins with round `first`.
std::size_t end_of_step(const Plan& plan, std::size_t first);

// The all-reduce of `whole` from the view of `rank`, for any number of ranks.
Plan make_plan(Collective collective, std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
