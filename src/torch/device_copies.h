#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "learners/learner.h"
#include "learners/sleeper.h"
#include "torch/flat_parameters.h"

namespace sluice {

// The host's side of a network whose parameters are on an accelerator. It stands between a step and
// its hooks: a layer's parameters go to the device when the hooks let the layer pass, its gradients
// come back as soon as they are final, and the hooks hear of them when they are here. Both ways
// have a stream of their own, and no stream waits for more than it needs. All of it goes by
// LibTorch's interface for any kind of device.
class DeviceCopies final : public StepHooks {
 public:
  // The parameters are on the device. All work on the network belongs on compute_stream().
  DeviceCopies(FlatParameters& flat, const std::vector<Layer>& layers,
               std::shared_ptr<const Sleeper> sleeper);

  c10::Stream compute_stream() const { return compute_; }

  // In pinned memory of the host.
  std::span<float> parameters();
  std::span<float> gradients();
  std::shared_ptr<float[]> further_gradients() const;
  void gradients_into(std::span<float> buffer);

  // The step about to begin speaks to these hooks, through this object.
  StepHooks& begin_step(StepHooks& hooks);
  // After the backward pass: returns when the hooks have heard of all gradients.
  void end_step();

  // All parameters as they are here.
  void bring_all();

  // Whether this LibTorch can tell the time between events.
  static bool has_times();

 private:
  // A layer in one step. The pass begins with it when it has reached it and the parameters are in;
  // its gradient begins to leave when it is final and the one before has left.
  struct Trail {
    explicit Trail(c10::DeviceType device);

    c10::Event reached;  // by the forward pass
    c10::Event in_begin;
    c10::Event in_end;
    c10::Event ready;  // the gradient is final
    c10::Event out_end;
  };
  // What a layer has in the flat buffers that stay.
  struct Views {
    at::Tensor host_parameters;
    at::Tensor parameters;
    at::Tensor gradients;
  };

  bool before_layer(LayerId layer) override;
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  // Tells the hooks of gradients that have arrived.
  void announce_arrivals();
  void report_times();

  FlatParameters& flat_;
  const std::vector<Layer>& layers_;
  std::shared_ptr<const Sleeper> sleeper_;
  c10::Device device_;
  c10::impl::VirtualGuardImpl streams_;
  c10::Stream compute_;
  c10::Stream in_;
  c10::Stream out_;
  at::Tensor parameters_;
  at::Tensor own_gradients_;
  at::Tensor gradients_;  // where they go now
  std::vector<Views> views_;
  std::vector<Trail> trails_;
  c10::Event forward_end_;
  std::vector<LayerId> forward_order_;   // of this step
  std::vector<LayerId> backward_order_;  // likewise
  std::deque<LayerId> on_the_way_;       // gradients; they arrive in this order
  StepHooks* hooks_ = nullptr;
};

}  // namespace sluice
