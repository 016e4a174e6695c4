#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/algorithm.h"
#include "report/page/page.h"
#include "report/page/run_data.h"

namespace sluice {

// Where the time of an iteration goes, in microseconds, as the mean over the workers.
struct IterationTimes {
  double compute = 0;
  double communication = 0;  // a worker waits, and its host sends or receives
  double others = 0;         // a worker waits for what others, or its own host, have not begun
  double aggregation = 0;    // a worker waits for sums and updates, on its machine or on a server
  double loading = 0;        // a worker waits for its batch
  double rest = 0;           // not accounted for

  double total() const { return compute + communication + others + aggregation + loading + rest; }
};

// None if the run was too short to be measured.
std::optional<IterationTimes> iteration_times(const RunData& run);

// How much of the busiest link was used, from 0 to 1; none if there is no link, as between threads
// of a process, or if its rate is unknown.
std::optional<double> link_use(const RunData& run);

// What limits a run.
enum class Limit : std::uint8_t {
  kUnknown,
  kCompute,
  kBandwidth,  // links are full
  kWaiting,    // messages are waited for while links have room: latency, order, message length
  kOthers,     // stragglers, or what else the algorithm waits for
  kAggregation,
  kLoading,
};

struct LimitFigures {
  IterationTimes times;
  std::optional<double> link_use = {};
  std::optional<double> bound_us = {};  // no order of the same messages makes an iteration shorter
  bool has_priority = false;            // urgent messages overtake others
  // Of the run: what a worker waits for. None: for gradients of all others.
  std::optional<Algorithm> algorithm = {};
};

Limit limit_of(const LimitFigures& figures);
// In words, with what would help and what would not.
Statement statement_of(const LimitFigures& figures);

// The same for a run.
Statement limits_of(const RunData& run);

}  // namespace sluice
