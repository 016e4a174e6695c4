#include "collectives/plan.h"

#include "base/check.h"
#include "collectives/binary_tree.h"
#include "collectives/halving_doubling.h"
#include "collectives/recursive_doubling.h"
#include "collectives/ring.h"

namespace sluice {

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
    case Collective::kNative:
    case Collective::kSharedMemory:
      break;
  }
  fail_check("a collective of the driver has no plan");
}

}  // namespace sluice
