#include "collectives/plan.h"

#include "base/check.h"
#include "collectives/binary_tree.h"
#include "collectives/direct.h"
#include "collectives/halving_doubling.h"
#include "collectives/recursive_doubling.h"
#include "collectives/ring.h"

namespace sluice {

std::size_t end_of_step(const Plan& plan, std::size_t first) {
  std::size_t end = first + 1;
  while (end < plan.size() && plan[end].together) {
    ++end;
  }
  return end;
}

Plan make_plan(Collective collective, std::size_t rank, std::size_t size, Range whole) {
  check(rank < size, "a rank is below the number of ranks");
  switch (collective) {
    case Collective::kRing:
      return ring(rank, size, whole);
    case Collective::kRecursiveDoubling:
      return recursive_doubling(rank, size, whole);
    case Collective::kHalvingDoubling:
      return halving_doubling(rank, size, whole);
    case Collective::kBinaryTree:
      return binary_tree(rank, size, whole);
    case Collective::kDirect:
      return direct(rank, size, whole);
    case Collective::kNative:
    case Collective::kSharedMemory:
      break;
  }
  fail_check("a collective of the driver has no plan");
}

}  // namespace sluice
