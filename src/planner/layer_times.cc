#include "planner/layer_times.h"

#include <algorithm>

#include "base/median.h"

namespace sluice {

void LayerTimes::computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                          Time end) {
  Seen& seen = workers_[worker.index()];
  if (iteration != seen.latest) {
    seen.latest = iteration;
    seen.starts.push_back(begin);
  }
  if (seen.starts.size() > 1) {
    Sum& sum = (pass == Pass::kForward ? seen.forward : seen.backward)[layer.index()];
    sum.time += end - begin;
    ++sum.count;
  }
}

Profile LayerTimes::profile(const std::vector<Layer>& layers) const {
  Profile profile;
  profile.name = "measured";
  for (std::size_t l = 0; l < layers.size(); ++l) {
    profile.layers.push_back({layers[l].name, layers[l].range.size(), mean(l, &Seen::forward),
                              mean(l, &Seen::backward)});
  }
  return profile;
}

Duration LayerTimes::mean(std::size_t layer, std::vector<Sum> Seen::*pass) const {
  Sum all;
  for (const Seen& seen : workers_) {
    const Sum& sum = (seen.*pass)[layer];
    all.time += sum.time;
    all.count += sum.count;
  }
  return all.count > 0 ? all.time / all.count : Duration{0};
}

std::vector<Duration> LayerTimes::iterations() const {
  const auto seen =
      std::ranges::find_if(workers_, [](const Seen& worker) { return !worker.starts.empty(); });
  std::vector<Duration> lengths;
  for (std::size_t i = 2; seen != workers_.end() && i < seen->starts.size(); ++i) {
    lengths.push_back(seen->starts[i] - seen->starts[i - 1]);
  }
  return lengths;
}

Duration LayerTimes::iteration() const {
  const std::vector<Duration> lengths = iterations();
  return lengths.empty() ? Duration{0} : median_of(lengths);
}

}  // namespace sluice
