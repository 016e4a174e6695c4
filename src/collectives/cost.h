#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "collectives/plan.h"
#include "formats/cluster.h"
#include "model/job.h"

namespace sluice {

// Who takes part: ranks 0 ... k-1 are on the first machine, k ... 2k-1 on the second, and so on.
struct Ranks {
  std::size_t size = 1;
  std::size_t per_machine = 1;
};
Ranks ranks_of(const Job& job);

// What a sum asks of the busiest machine, counted from the plans, for any number of ranks. Bytes
// are in units of the sum; messages within a machine are free.
struct Load {
  double startups = 0;  // that follow one another
  double messages = 0;
  double moved = 0;  // out or in, whichever is more
  double added = 0;
  double coded = 0;  // packed and unpacked by a dense codec, if there is one

  bool operator==(const Load&) const = default;
};
struct PlanLoad {
  struct Steps {
    Load each;
    int count = 1;
  };
  std::vector<Steps> steps;  // in their order
  Load total;                // of all steps; other sums can fill their gaps
};
PlanLoad load_of(Collective collective, const Ranks& ranks);

// Time of a sum of M bytes that is alone on the links and goes in one segment, as a + b*M (MG-WFBP,
// Table II).
AllReduceCost collective_cost(const PlanLoad& load, const LinkCost& link);

// A sum of so many bytes in several segments.
struct SumCost {
  Duration alone{0};  // until it is done, if nothing else is in flight
  // What it takes of the busiest link or processor: the time per sum if many are in flight, since
  // their start-ups then overlap.
  Duration busy{0};
};
// What a dense codec works on in a sum, and how many threads do it.
struct Coding {
  Bytes floats = 0;  // 0: nothing is packed
  int threads = 1;
};
SumCost sum_cost(const PlanLoad& load, const LinkCost& link, Bytes bytes, std::size_t segments,
                 const Coding& coding = {});

// What all ranks together send to sum `bytes`; exact for any number of ranks.
Bytes bytes_sent(Collective collective, std::size_t size, Bytes bytes);

}  // namespace sluice
