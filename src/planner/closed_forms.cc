#include "planner/closed_forms.h"

#include <algorithm>
#include <vector>

#include "partition/merge.h"

namespace sluice {
namespace {

Duration message_time(std::int64_t params, const AllReduceCost& cost) {
  return params > 0 ? cost.time(params * kFloatBytes) : Duration{0};
}

}  // namespace

Duration naive_iteration(const Profile& profile, const AllReduceCost& cost) {
  Duration time = profile.compute();
  for (const LayerProfile& layer : profile.layers) {
    time += message_time(layer.params, cost);
  }
  return time;
}

Duration single_iteration(const Profile& profile, const AllReduceCost& cost) {
  return profile.compute() + message_time(total_params(profile.layout()), cost);
}

Duration wfbp_iteration(const Profile& profile, const AllReduceCost& cost) {
  std::vector<LayerGroup> each_alone;
  for (std::size_t l = profile.layers.size(); l-- > 0;) {
    each_alone.push_back({l, l + 1});
  }
  return merged_iteration(profile, cost, each_alone);
}

Duration hidden_iteration(const Profile& profile, const AllReduceCost& cost) {
  return exposed_iteration(profile, cost, 0);
}

Duration exposed_iteration(const Profile& profile, const AllReduceCost& cost,
                           std::size_t bottleneck) {
  Duration time = profile.forward();
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const LayerProfile& layer = profile.layers[l];
    time += l >= bottleneck ? layer.backward : Duration{0};
    time += l <= bottleneck ? message_time(layer.params, cost) : Duration{0};
  }
  return time;
}

double speedup(std::size_t workers, Duration compute, Duration exposed) {
  return static_cast<double>(workers) / (1 + to_seconds(exposed) / to_seconds(compute));
}

Duration synchronous_iteration(const Stages& stages) {
  return stages.update + stages.compute + stages.communicate;
}

Duration ideal_pipelined_iteration(const Stages& stages, std::int64_t depth) {
  return synchronous_iteration(stages) / depth;
}

Duration pipelined_iteration(const Stages& stages) {
  return std::max(stages.update + stages.compute, stages.communicate);
}

Duration segmented_all_reduce(const AllReduceCost& cost, Bytes bytes, std::int64_t segments,
                              Duration sync) {
  return cost.time(bytes) + (segments - 1) * cost.startup + segments * sync;
}

double scaling_efficiency(const Stages& stages) {
  return to_seconds(stages.update + stages.compute) / to_seconds(pipelined_iteration(stages));
}

}  // namespace sluice
