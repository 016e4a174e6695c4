#include "torch/profiling/torch_profile.h"

#include <ATen/Context.h>

#include <algorithm>

#include "base/median.h"
#include "torch/autocast.h"
#include "torch/device.h"
#include "torch/device_clock.h"
#include "torch/forward_gate.h"
#include "torch/gradient_hooks.h"
#include "torch/layer_calls.h"
#include "torch/network_setup.h"
#include "torch/profiling/roofline.h"
#include "torch/step_times.h"
#include "torch/task_network.h"

namespace sluice {
namespace {

// The network of a task with one batch, ready to compute.
struct Workplace {
  Workplace(const NetworkFactory& make, const TorchTask& task, std::int64_t size,
            const Placement& placement) {
    at::manual_seed(task.seed);
    network = make();
    network->reseed(task.seed);
    move_to(*network, placement.device);
    batches_in_order(task.train, size).load(0, batch);
    samples = samples_of(batch, placement);
    labels = labels_of(batch, placement);
    layout = record_layout(*network, samples, labels);
  }

  std::unique_ptr<Network> network;
  Batch batch;  // the tensors may be views of it
  at::Tensor samples;
  at::Tensor labels;
  Layout layout;
};

Profile profile_of(const TorchTask& task, const std::vector<Layer>& layers) {
  Profile profile;
  profile.name = task.model;
  profile.batch = task.batch;
  for (const Layer& layer : layers) {
    profile.layers.push_back(untimed(layer));
  }
  return profile;
}

Duration from_seconds(double seconds) { return from_us(seconds * 1e6); }

using Steps = std::vector<std::vector<LayerTime>>;  // by step, by layer

Steps time_steps(Workplace& place, Precision precision, DeviceClock& clock,
                 const std::function<double()>& seconds) {
  constexpr std::size_t kWarmUp = 3;
  constexpr std::size_t kMin = 7;
  constexpr std::size_t kMax = 100;
  constexpr double kEnough = 3;  // seconds
  const std::vector<at::Tensor> tensors = parameters_in_order(*place.network, place.layout);
  const ForwardGate gate(tensors);
  GradientHooks gradient_hooks(tensors);
  StepTimes times(clock, place.layout.layers.size());
  const auto forward = [&] {
    const Autocast autocast(precision, place.samples.device().type());
    return place.network->loss(place.samples, place.labels);
  };
  const auto step = [&] {
    LayerCalls calls(place.layout, times);
    times.begin();
    const at::Tensor loss =
        gate.run(forward, [&](std::size_t parameter) { calls.before_read(parameter); });
    calls.forward_done();
    gradient_hooks.backward(loss, [&](std::size_t parameter) { calls.gradient_final(parameter); });
    calls.backward_done();
    return times.end();
  };
  for (std::size_t i = 0; i < kWarmUp; ++i) {
    step();
  }
  Steps steps;
  const double begin = seconds();
  while (steps.size() < kMin || (steps.size() < kMax && seconds() - begin < kEnough)) {
    steps.push_back(step());
  }
  return steps;
}

void summarise(const Steps& steps, Profile& profile) {
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    std::vector<double> forward;
    std::vector<double> backward;
    for (const std::vector<LayerTime>& step : steps) {
      forward.push_back(step[i].forward);
      backward.push_back(step[i].backward);
    }
    LayerProfile& layer = profile.layers[i];
    layer.forward = from_seconds(median_of(forward));
    layer.backward = from_seconds(median_of(backward));
    layer.forward_iqr = from_seconds(interquartile_range(forward));
    layer.backward_iqr = from_seconds(interquartile_range(backward));
  }
}

// The cost of an operator grows with the samples, except for the parameters that it reads.
double seconds_of(const OperatorCost& cost, double more_samples, const DeviceSpeed& speed) {
  const double flops = static_cast<double>(cost.flops) * more_samples;
  const double bytes =
      static_cast<double>(cost.parameters) + static_cast<double>(cost.activations) * more_samples;
  return std::max(flops / speed.flops, bytes / speed.bytes);
}

template <class Work>
Result<Profile> with_network(const TorchTask& task, const Work& work) {
  const auto make = network_of_task(task);
  if (!make) {
    return make.error();
  }
  try {
    return work(*make);
  } catch (const std::exception& e) {
    return refusal(task, e);
  }
}

}  // namespace

Result<Profile> measure_profile(const TorchTask& task, const std::function<double()>& seconds) {
  const Placement placement{device_of(task.device, 0), task.channels_last};
  return with_network(task, [&](const NetworkFactory& make) {
    Workplace place(make, task, task.batch, placement);
    const auto clock = make_device_clock(placement.device, seconds);
    Profile profile = profile_of(task, place.layout.layers);
    summarise(time_steps(place, task.precision, *clock, seconds), profile);
    return profile;
  });
}

Result<Profile> estimate_profile(const TorchTask& task, const DeviceSpeed& speed) {
  return with_network(task, [&](const NetworkFactory& make) {
    // All images have the same cost, so a few stand for many; sentences differ.
    const bool alike = task.train->form().words == 0;
    const std::int64_t looked_at = alike ? std::min<std::int64_t>(task.batch, 2) : task.batch;
    Workplace place(make, task, looked_at, {});
    const auto operators =
        operators_by_layer(*place.network, place.layout, place.samples, place.labels);
    Profile profile = profile_of(task, place.layout.layers);
    profile.estimated = true;
    const double more = static_cast<double>(task.batch) / static_cast<double>(looked_at);
    for (std::size_t i = 0; i < operators.size(); ++i) {
      double forward = 0;
      double backward = 0;
      for (const OperatorCost& cost : operators[i]) {
        const double once = seconds_of(cost, more, speed);
        forward += once;
        backward += cost.trained ? 2 * once : 0;
      }
      profile.layers[i].forward = from_seconds(forward);
      profile.layers[i].backward = from_seconds(backward);
    }
    return profile;
  });
}

}  // namespace sluice
