#pragma once

#include <rapidcheck.h>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "support/generators.h"

namespace sluice::testing {

// Like between, but covers the whole range from the first case on.
inline rc::Gen<std::int64_t> anywhere(std::int64_t low, std::int64_t high) {
  return rc::gen::resize(rc::kNominalSize, between(low, high));
}

// A random net; some layers are bare (without parameters).
inline Profile any_net(std::int64_t max_layers) {
  Profile profile;
  profile.name = "generated";
  const auto layers = *anywhere(1, max_layers);
  for (std::int64_t l = 0; l < layers; ++l) {
    const bool bare = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
    profile.layers.push_back({"L" + std::to_string(l), bare ? 0 : *anywhere(1, 4000),
                              from_us(static_cast<double>(*anywhere(0, 20))),
                              from_us(static_cast<double>(*anywhere(0, 50)))});
  }
  return profile;
}

inline AllReduceCost any_allreduce() {
  return {from_us(static_cast<double>(*anywhere(0, 100))), *rc::gen::element(0.0, 0.7, 3.0, 11.0)};
}

// Backward steps and messages in microseconds; layers in forward order. A message takes the
// start-up and one microsecond per parameter.
struct TimedLayer {
  double backward_us;
  std::int64_t params;
};

inline Profile timed_net(double forward_us, const std::vector<TimedLayer>& layers) {
  Profile profile;
  profile.name = "timed";
  for (const auto& [backward_us, params] : layers) {
    profile.layers.push_back({"L", params, from_us(0), from_us(backward_us)});
  }
  profile.layers.front().forward = from_us(forward_us);
  return profile;
}

inline AllReduceCost timed_allreduce(double startup_us) {
  return {from_us(startup_us), 1000.0 / kFloatBytes};
}

}  // namespace sluice::testing
