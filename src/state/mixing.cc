#include "state/mixing.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice {

void blend(std::span<float> parameters, const Work& work) {
  const auto other = work.sources.front().values();
  check(parameters.size() == other.size(), "both parts of a blend have the same length");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = work.keep * parameters[i] + work.add * other[i];
  }
}

Payload pull(std::span<float> parameters, const Work& work) {
  const auto other = work.sources.front().values();
  std::vector<float> output(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float delta = work.pull * (other[i] - parameters[i]);
    output[i] = other[i] - delta;
    parameters[i] += delta;
  }
  return Payload::owning(std::move(output));
}

Payload mean_of(const Work& work) {
  check(work.sources.size() == 2, "a swap is between two");
  const auto x = work.sources[0].values();
  const auto y = work.sources[1].values();
  std::vector<float> mean(x.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = 0.5F * (x[i] + y[i]);
  }
  return Payload::owning(std::move(mean));
}

void move(std::span<float> parameters, const Work& work) {
  check(work.sources.size() == 2, "a move goes from one source to another");
  const auto to = work.sources[0].values();
  const auto from = work.sources[1].values();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] += to[i] - from[i];
  }
}

}  // namespace sluice
