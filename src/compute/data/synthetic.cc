#include "compute/data/synthetic.h"

#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

// Uniform with mean 0 and deviation 1; unlike a normal one it needs no logarithm, whose last bit
// differs between machines.
double unit_noise(Random& random) { return (random.uniform() * 2 - 1) * std::sqrt(3.0); }

std::vector<float> make_prototypes(const SyntheticSpec& spec, std::int64_t sample_size) {
  Random random(spec.seed, 0);
  std::vector<float> prototypes(static_cast<std::size_t>(spec.classes * sample_size));
  for (float& value : prototypes) {
    value = static_cast<float>(unit_noise(random));
  }
  return prototypes;
}

DataSet make_set(const SyntheticSpec& spec, std::int64_t samples, std::uint64_t stream) {
  DataSet set;
  set.sample_shape = spec.sample_shape;
  set.classes = spec.classes;
  const std::int64_t sample_size = set.sample_size();
  const std::vector<float> prototypes = make_prototypes(spec, sample_size);
  const double scale = 1 / std::sqrt(1 + spec.noise * spec.noise);
  Random random(spec.seed, stream);
  set.features.reserve(static_cast<std::size_t>(samples * sample_size));
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t label = i % spec.classes;
    set.labels.push_back(label);
    for (std::int64_t j = 0; j < sample_size; ++j) {
      const double prototype = prototypes[static_cast<std::size_t>(label * sample_size + j)];
      set.features.push_back(
          static_cast<float>((prototype + spec.noise * unit_noise(random)) * scale));
    }
  }
  return set;
}

}  // namespace

DataSplit make_synthetic(const SyntheticSpec& spec) {
  check(spec.classes > 0, "synthetic data has at least one class");
  return {make_set(spec, spec.train_samples, 1), make_set(spec, spec.test_samples, 2)};
}

}  // namespace sluice
