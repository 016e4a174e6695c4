#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "learners/learner.h"
#include "learners/sleeper.h"
#include "torch/device_packing.h"
#include "torch/device_trail.h"
#include "torch/device_update.h"
#include "torch/flat_parameters.h"
#include "torch/gradient_extremes.h"

namespace sluice {

// The host's side of a network whose parameters are on an accelerator. It sits between a step and
// its hooks: it copies a layer's parameters to the device when the hooks release the layer, copies
// its gradients back as soon as they are final, and tells the hooks when they have arrived. If
// updates are left to it, it copies the sum of the gradients instead and updates on the device; if
// packing is, it copies codes both ways. If local steps are, it takes them when gradients are
// final, and copies parameters where the turns say so; what a host does not need it does not wait
// for, so that the device has the next step before it has done this one. Each direction has its own
// stream, and no stream waits for more than it needs. Everything goes through LibTorch's interface
// for any kind of device.
class DeviceCopies final : public StepHooks {
 public:
  // The parameters are on the device. All work on the network belongs on compute_stream().
  DeviceCopies(FlatParameters& flat, const std::vector<Layer>& layers,
               std::shared_ptr<const Sleeper> sleeper);

  c10::Stream compute_stream() const { return compute_; }
  // What `make` makes of a batch, on the device. It need not wait for work of the last step.
  at::Tensor input(const std::function<at::Tensor()>& make) const;

  // In pinned memory of the host.
  std::span<float> parameters();
  std::span<float> gradients();
  std::shared_ptr<float[]> further_gradients() const;
  void gradients_into(std::span<float> buffer);

  // As of the learner.
  bool gradient_is_finite(LayerId layer) const;
  void update_with(const UpdateRule& rule, const BatchShare& share);
  void pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                 const ChunkMap& chunks);
  void find_right_factors(std::span<const Range> matrices);
  void step_locally(const UpdateRule& rule, LayerTurns turns);
  void settle(Iteration iteration);
  // What updates and packing on the device remember.
  std::vector<at::Tensor> state() const;

  // The next step calls these hooks through the object that this returns.
  StepHooks& begin_step(Iteration iteration, StepHooks& hooks);
  // Copies the loss to the host, in the order of compute_stream(). Between forward and backward
  // pass.
  void bring_loss(const at::Tensor& loss);
  // After the backward pass: returns when the hooks know of all gradients, and the host of the
  // loss.
  void end_step();
  double loss() const { return loss_.item<double>(); }

  // Copies all parameters from the host to the device.
  void bring_all();

  // Whether this LibTorch can measure the time between events.
  static bool has_times();

 private:
  bool before_layer(LayerId layer) override;
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  // Whether the host's parameters of this iteration are newer than those on the device.
  bool host_leads(LayerId layer, Iteration iteration) const;
  // Brings the layer to the device, with those after it that are released too: many small copies
  // and updates take long to queue, and where processes share the device, to get their turn.
  void bring_from(LayerId layer);
  // The forward pass waits: brings other layers that are released, if they are many.
  void bring_ahead();
  // Whether the layer is released, and is still to be brought in this step.
  bool can_bring(std::size_t layer) const;
  void bring_together(std::size_t first, std::size_t end);
  // Queues what makes the layers from `first` up to `end` current on the device.
  void bring(std::size_t first, std::size_t end, Iteration iteration);
  // Until all that is queued there is done.
  void wait_for(c10::Stream stream) const;
  void send_gradient(LayerId layer);
  void send_codes();
  // Takes the local step of the layers of final_, which are neighbours, the last first.
  void take_local_step();
  // Notes when the device has done the forward pass of this step.
  void see_forward_end();
  // Tells the hooks what has happened in a step that the device has done.
  void report(const DeviceStep& step, Duration ended_ago);
  void report_nonfinite(const DeviceStep& step);
  // Looks for values that are not finite while the gradient is still on the device.
  void look_at_gradient(LayerId layer);
  // Tells the hooks which gradients have arrived.
  void announce_arrivals();

  FlatParameters& flat_;
  const std::vector<Layer>& layers_;
  std::shared_ptr<const Sleeper> sleeper_;
  c10::Device device_;
  c10::impl::VirtualGuardImpl streams_;
  c10::Stream compute_;
  c10::Stream in_;
  c10::Stream out_;
  c10::Stream between_;  // sums of gradients: for another thread than that of the steps
  at::Tensor parameters_;
  at::Tensor own_gradients_;
  at::Tensor gradients_;  // where they are copied now
  GradientExtremes extremes_;
  at::Tensor loss_;  // in pinned memory
  std::optional<DeviceUpdate> update_;
  std::optional<DevicePacking> packing_;
  std::optional<LayerTurns> turns_;  // if it takes local steps
  // Steps have been taken since the device got all parameters: it goes on from its own, with local
  // steps, or with what came back of the last gradients.
  bool follows_ = false;
  std::vector<LayerId> final_;  // their local step is to be taken, or their codes to be sent
  DeviceStep step_;
  DeviceStep last_step_;
  bool runs_ahead_ = false;  // the last step was queued to its end, and is still to be reported
  std::optional<Time>
      forward_seen_;                // when the forward pass of this step was first seen to be done
  std::deque<LayerId> on_the_way_;  // gradients in flight; they arrive in this order
  StepHooks* hooks_ = nullptr;
  Iteration iteration_ = 0;
};

}  // namespace sluice
