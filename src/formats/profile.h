#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/layer.h"

namespace sluice {

struct LayerProfile {
  std::string name;
  std::int64_t params = 0;
  Duration forward{0};
  Duration backward{0};
  // Interquartile range of the measured times; 0 if nothing was measured.
  Duration forward_iqr{0};
  Duration backward_iqr{0};
  Matrix matrix = {};  // as of a Layer; its begin counts from that of the layer

  bool operator==(const LayerProfile&) const = default;
};

// What one worker computes in one iteration: layers in forward order, with their times.
struct Profile {
  std::string name;
  std::int64_t batch = 1;
  std::string device;      // on which these times hold; empty if the file does not say
  bool estimated = false;  // the times are computed, not measured
  std::string source;      // where the times come from; may be empty
  std::vector<LayerProfile> layers;

  Duration forward() const;
  Duration backward() const;
  Duration compute() const { return forward() + backward(); }
  std::vector<Layer> layout() const;
};

// A layer whose times nobody knows.
LayerProfile untimed(const Layer& layer);

// Upper limit for forward plus backward: one day, so that sums over iterations fit their type.
inline constexpr double kLongestPassUs = 86'400e6;

// The same net with the times and parameter counts of all layers multiplied. A layer with
// parameters keeps at least one.
Profile scaled(Profile profile, double time_scale, double param_scale);

// An iteration of so many micro-batches, whose gradients are exchanged once: the forward pass of
// the first waits for parameters, and the backward pass of the last makes gradients final. What is
// computed between the two belongs to the last layer's forward pass.
Profile accumulated(Profile profile, std::int64_t micro_batches);

// Reads the JSON profile format; errors name the file and the key.
Result<Profile> read_profile(const std::string& path);
Result<Profile> parse_profile(const std::string& text, const std::string& source);
// Writes the same format. Reading it back gives an equal profile.
Result<void> write_profile(const std::string& path, const Profile& profile);

}  // namespace sluice
