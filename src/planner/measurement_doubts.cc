#include "planner/measurement_doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"

namespace sluice {
namespace {

constexpr double kOthersLoad = 0.5;  // the system itself causes less
constexpr double kFarApart = 0.15;   // relative to the median
constexpr double kShorter = 0.9;     // relative to what the wire allows

constexpr const char* kAgain = "measure again when nothing else runs";

double percent(double share) { return 100 * share; }

}  // namespace

std::vector<std::string> doubts_of(const std::vector<MachineLoad>& machines) {
  std::vector<std::string> doubts;
  for (const MachineLoad& machine : machines) {
    if (machine.processes > machine.cores) {
      doubts.push_back(fmt::format(
          "{}: {} processes shared {} core{} and waited for each other; start fewer processes "
          "there",
          machine.host, machine.processes, machine.cores, machine.cores == 1 ? "" : "s"));
    }
    if (machine.load > kOthersLoad && machine.load + static_cast<double>(machine.processes) >
                                          static_cast<double>(machine.cores)) {
      doubts.push_back(fmt::format(
          "{}: the load was {:.1f} on {} core{} before {} process{} began to measure; {}",
          machine.host, machine.load, machine.cores, machine.cores == 1 ? "" : "s",
          machine.processes, machine.processes == 1 ? "" : "es", kAgain));
    }
  }
  return doubts;
}

std::vector<std::string> doubts_of(const NetworkFit& network) {
  std::vector<std::string> doubts;
  if (network.links.empty()) {
    return doubts;
  }
  std::vector<double> rates;
  std::vector<double> ranges;
  for (const Link& link : network.links) {
    rates.push_back(link.gbps);
    ranges.push_back(link.relative_range);
  }
  if (const double apart = interquartile_range(rates) / network.gbps; apart > kFarApart) {
    doubts.push_back(fmt::format(
        "bandwidth: the interquartile range of the links is {:.0f} % of the median; {}, "
        "or see sluice doctor --net for slow links",
        percent(apart), kAgain));
  }
  if (const double apart = median_of(ranges); apart > kFarApart) {
    doubts.push_back(fmt::format(
        "bandwidth: repetitions of the same message differ by {:.0f} % of their median; {}",
        percent(apart), kAgain));
  }
  return doubts;
}

std::vector<std::string> doubts_of(const MeasuredSums& sums) {
  std::vector<std::string> doubts;
  if (!sums.points.empty()) {
    const Timing& longest = sums.points.back();
    const double apart =
        to_us(longest.interquartile_range) / to_us(std::max(longest.median, Duration{1}));
    if (apart > kFarApart) {
      doubts.push_back(fmt::format(
          "all-reduce {}: the interquartile range of the longest sum is {:.0f} % of the median; {}",
          sums.collective, percent(apart), kAgain));
    }
  }
  if (sums.ns_per_byte < kShorter * sums.wire_ns_per_byte) {
    doubts.push_back(fmt::format(
        "all-reduce {}: took {:.3g} ns per byte, but at the measured bandwidth none can take less "
        "than {:.3g}: the bandwidth was measured too low, or the sums too short; {}",
        sums.collective, sums.ns_per_byte, sums.wire_ns_per_byte, kAgain));
  }
  return doubts;
}

}  // namespace sluice
