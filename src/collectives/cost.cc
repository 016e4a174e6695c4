#include "collectives/cost.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace sluice {
namespace {

// Messages and bytes that follow one another on the critical path; bytes in units of M.
struct Path {
  double messages;
  double moved;
  double added;
};

Path critical_path(Collective collective, std::size_t size) {
  const auto n = static_cast<double>(size);
  const double levels = std::log2(n);
  const double all_but_one = (n - 1) / n;
  switch (collective) {
    case Collective::kRing:
      return {2 * (n - 1), 2 * all_but_one, all_but_one};
    case Collective::kRecursiveDoubling:
      return {levels, levels, levels};
    case Collective::kHalvingDoubling:
      return {2 * levels, 2 * all_but_one, all_but_one};
    case Collective::kBinaryTree:
      return {2 * levels, 2 * levels, levels};
    case Collective::kNative:
    case Collective::kSharedMemory:
      break;
  }
  fail_check("a collective of the driver has no known cost");
}

}  // namespace

AllReduceCost collective_cost(Collective collective, std::size_t size, const LinkCost& link) {
  check(size > 0, "a collective needs at least one rank");
  const Path path = critical_path(collective, size);
  return {from_us(path.messages * to_us(link.startup)),
          path.moved * link.ns_per_byte + path.added * link.reduce_ns_per_byte};
}

Collective cheapest_collective(std::size_t size, Bytes bytes, const LinkCost& link) {
  Collective best = Collective::kRing;
  for (const Collective collective : kPlannedCollectives) {
    if (collective_cost(collective, size, link).time(bytes) <
        collective_cost(best, size, link).time(bytes)) {
      best = collective;
    }
  }
  return best;
}

Bytes bytes_sent(Collective collective, std::size_t size, Bytes bytes) {
  check(size > 0, "a collective needs at least one rank");
  if (collective != Collective::kRecursiveDoubling) {
    return 2 * static_cast<Bytes>(size - 1) * bytes;
  }
  const std::size_t power = std::bit_floor(size);
  const auto levels = static_cast<std::size_t>(std::countr_zero(power));
  return static_cast<Bytes>(power * levels + 2 * (size - power)) * bytes;
}

}  // namespace sluice
