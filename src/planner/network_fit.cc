#include "planner/network_fit.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/median.h"

namespace sluice {
namespace {

std::vector<LinkTimings> links_that_count(const Survey& survey) {
  std::vector<LinkTimings> between;
  std::ranges::copy_if(survey.links, std::back_inserter(between), [&](const LinkTimings& link) {
    return !survey.same_machine(link.from, link.to);
  });
  return between.empty() ? survey.links : between;
}

std::vector<Timing> pooled(const std::vector<LinkTimings>& links) {
  std::map<Bytes, std::vector<Timing>> by_size;
  for (const LinkTimings& link : links) {
    for (const Timing& timing : link.timings) {
      by_size[timing.bytes].push_back(timing);
    }
  }
  std::vector<Timing> points;
  for (const auto& [bytes, timings] : by_size) {
    std::vector<Duration> medians;
    std::ranges::transform(timings, std::back_inserter(medians), &Timing::median);
    Timing point = timing_of(bytes, std::move(medians));
    for (const Timing& timing : timings) {
      point.min = std::min(point.min, timing.min);
      point.max = std::max(point.max, timing.max);
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace

NetworkFit fit_network(const Survey& survey) {
  const std::vector<LinkTimings> counted = links_that_count(survey);
  check(!counted.empty(), "a network needs at least one link");
  NetworkFit fit;
  std::vector<Duration> latencies;
  std::vector<double> rates;
  for (const LinkTimings& timings : counted) {
    const Link& link = fit.links.emplace_back(link_of(timings));
    latencies.push_back(link.latency);
    rates.push_back(link.gbps);
  }
  fit.latency = median_of(std::move(latencies));
  fit.gbps = median_of(std::move(rates));
  fit.points = pooled(counted);
  return fit;
}

}  // namespace sluice
