#include "partition/merge.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

// The gradient of a layer with parameters.
struct Gradient {
  std::size_t layer = 0;
  Time ready{0};
  Bytes bytes = 0;
};

// In the order in which backward completes them (Eq. 6).
std::vector<Gradient> gradients_of(const Profile& profile) {
  std::vector<Gradient> gradients;
  Time now = profile.forward();
  for (std::size_t l = profile.layers.size(); l-- > 0;) {
    const LayerProfile& layer = profile.layers[l];
    now += layer.backward;
    if (layer.params > 0) {
      gradients.push_back({l, now, layer.params * kFloatBytes});
    }
  }
  return gradients;
}

// Message m carries the gradients ends[m-1] ... ends[m]-1. A bare layer belongs to the group of the
// layer before it, or to the first group.
MergePlan plan_of(const Profile& profile, const AllReduceCost& cost,
                  std::span<const Gradient> gradients, std::span<const std::size_t> ends) {
  MergePlan plan;
  std::size_t last = profile.layers.size();
  for (const std::size_t end : ends) {
    const std::size_t first = end == gradients.size() ? 0 : gradients[end - 1].layer;
    plan.groups.push_back({first, last});
    last = first;
  }
  plan.iteration = merged_iteration(profile, cost, plan.groups);
  return plan;
}

}  // namespace

Duration merged_iteration(const Profile& profile, const AllReduceCost& cost,
                          std::span<const LayerGroup> groups) {
  const std::vector<Gradient> gradients = gradients_of(profile);
  auto gradient = gradients.begin();
  Time channel_free{0};
  for (const LayerGroup& group : groups) {
    Time ready{0};
    Bytes bytes = 0;
    for (; gradient != gradients.end() && gradient->layer >= group.begin; ++gradient) {
      check(gradient->layer < group.end, "the groups cover every gradient");
      ready = gradient->ready;
      bytes += gradient->bytes;
    }
    if (bytes > 0) {
      channel_free = std::max(channel_free, ready) + cost.time(bytes);
    }
  }
  check(gradient == gradients.end(), "the groups cover every gradient");
  return std::max(channel_free, profile.compute());
}

// Line 13 as printed compares with the duration t_c[l] where it must compare with the start
// tau_c[l], and needs a tau_b[0] that is not defined. Reading tau_b[l-2] as the end of layer l-1's
// backward step fixes both: for l=2 it is the end of backward.
MergePlan merge_greedy(const Profile& profile, const AllReduceCost& cost) {
  const std::vector<Gradient> gradients = gradients_of(profile);
  std::vector<std::size_t> ends;
  Time start{0};  // earliest start of the message being collected
  Bytes bytes = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    start = std::max(start, gradients[i].ready);
    bytes += gradients[i].bytes;
    const bool last = i + 1 == gradients.size();
    if (last || gradients[i + 1].ready - start >= cost.startup) {
      ends.push_back(i + 1);
      start += cost.time(bytes);
      bytes = 0;
    }
  }
  return plan_of(profile, cost, gradients, ends);
}

// Ending an earlier message later never makes a later one end sooner. So the best plan for the
// first j gradients is the best plan for the first i followed by a last message i ... j-1.
MergePlan merge_optimal(const Profile& profile, const AllReduceCost& cost) {
  const std::vector<Gradient> gradients = gradients_of(profile);
  struct Best {
    Time end{0};
    std::size_t before_last = 0;  // gradients sent before the last message
  };
  std::vector<Best> best(gradients.size() + 1);  // best[j]: for the first j gradients
  for (std::size_t j = 1; j < best.size(); ++j) {
    best[j].end = Time::max();
    Bytes bytes = 0;
    for (std::size_t i = j; i-- > 0;) {
      bytes += gradients[i].bytes;
      const Time end = std::max(best[i].end, gradients[j - 1].ready) + cost.time(bytes);
      if (end <= best[j].end) {
        best[j] = {end, i};
      }
    }
  }
  std::vector<std::size_t> ends;
  for (std::size_t j = gradients.size(); j > 0; j = best[j].before_last) {
    ends.push_back(j);
  }
  std::reverse(ends.begin(), ends.end());
  return plan_of(profile, cost, gradients, ends);
}

MergePlan merge(const Profile& profile, const AllReduceCost& cost, Merge how) {
  return how == Merge::kGreedy ? merge_greedy(profile, cost) : merge_optimal(profile, cost);
}

}  // namespace sluice
