#include "partition/merge.h"

#include <algorithm>
#include <numeric>
#include <utility>

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
MergePlan plan_of(const Profile& profile, const StreamCost& cost,
                  std::span<const Gradient> gradients, std::span<const std::size_t> ends,
                  MergedAs as = MergedAs::kMerged) {
  MergePlan plan;
  plan.as = as;
  std::size_t last = profile.layers.size();
  for (const std::size_t end : ends) {
    const std::size_t first = end == gradients.size() ? 0 : gradients[end - 1].layer;
    plan.groups.push_back({first, last});
    last = first;
  }
  plan.iteration = streamed_iteration(profile, cost, plan.groups);
  return plan;
}

}  // namespace

Duration streamed_iteration(const Profile& profile, const StreamCost& cost,
                            std::span<const LayerGroup> groups) {
  const std::vector<Gradient> gradients = gradients_of(profile);
  auto gradient = gradients.begin();
  Time links_free{0};
  Time done{0};
  for (const LayerGroup& group : groups) {
    Time ready{0};
    Bytes bytes = 0;
    for (; gradient != gradients.end() && gradient->layer >= group.begin; ++gradient) {
      check(gradient->layer < group.end, "the groups cover every gradient");
      ready = gradient->ready;
      bytes += gradient->bytes;
    }
    if (bytes > 0) {
      const Time start = std::max(links_free, ready);
      links_free = start + cost.busy.time(bytes);
      done = std::max(done, start + cost.alone.time(bytes));
    }
  }
  check(gradient == gradients.end(), "the groups cover every gradient");
  return std::max(done, profile.compute());
}

Duration merged_iteration(const Profile& profile, const AllReduceCost& cost,
                          std::span<const LayerGroup> groups) {
  return streamed_iteration(profile, serial(cost), groups);
}

MergePlan separate_layers(const Profile& profile, const StreamCost& cost) {
  const std::vector<Gradient> gradients = gradients_of(profile);
  std::vector<std::size_t> ends(gradients.size());
  std::iota(ends.begin(), ends.end(), std::size_t{1});
  return plan_of(profile, cost, gradients, ends, MergedAs::kLayers);
}

MergePlan all_layers(const Profile& profile, const StreamCost& cost) {
  const std::vector<Gradient> gradients = gradients_of(profile);
  std::vector<std::size_t> ends;
  if (!gradients.empty()) {
    ends.push_back(gradients.size());
  }
  return plan_of(profile, cost, gradients, ends, MergedAs::kWhole);
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
  return plan_of(profile, serial(cost), gradients, ends);
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
  return plan_of(profile, serial(cost), gradients, ends);
}

MergePlan merge(const Profile& profile, const AllReduceCost& cost, Merge how) {
  return how == Merge::kGreedy ? merge_greedy(profile, cost) : merge_optimal(profile, cost);
}

// A plan for the time that the links are busy merges too little if start-ups do not overlap, and
// one for the time of single sums too much if they do.
MergePlan merge_if_faster(const Profile& profile, const StreamCost& cost, Merge how, double gain) {
  const auto faster = [](MergePlan a, MergePlan b) { return b.iteration < a.iteration ? b : a; };
  const auto merged = [&](const AllReduceCost& by) {
    MergePlan plan = merge(profile, by, how);
    plan.iteration = streamed_iteration(profile, cost, plan.groups);
    return plan;
  };
  const MergePlan plain = faster(separate_layers(profile, cost), all_layers(profile, cost));
  const MergePlan best = faster(merged(cost.busy), merged(cost.alone));
  return to_seconds(best.iteration) < (1 - gain) * to_seconds(plain.iteration) ? best : plain;
}

}  // namespace sluice
