#include "torch/network_setup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include "torch/forward_gate.h"

namespace sluice {

at::Tensor samples_of(Batch& batch, const MicroBatch& part, const Placement& placement) {
  const at::Tensor samples =
      (batch.words.empty() ? at::from_blob(batch.features.data(), batch.shape, at::kFloat)
                           : at::from_blob(batch.words.data(), batch.shape, at::kLong))
          .narrow(0, part.samples.begin, part.samples.size())
          .to(placement.device);
  return placement.channels_last && samples.dim() == 4
             ? samples.contiguous(at::MemoryFormat::ChannelsLast)
             : samples;
}

at::Tensor labels_of(Batch& batch, const MicroBatch& part, const Placement& placement) {
  if (!batch.targets.empty()) {
    return at::from_blob(batch.targets.data(), batch.target_shape, at::kFloat)
        .narrow(0, part.samples.begin, part.samples.size())
        .to(placement.device);
  }
  return at::from_blob(batch.labels.data(), {static_cast<std::int64_t>(batch.labels.size())},
                       at::kLong)
      .narrow(0, part.labels.begin, part.labels.size())
      .to(placement.device);
}

at::Tensor samples_of(Batch& batch, const Placement& placement) {
  return samples_of(batch, micro_batches_of(batch, 1).front(), placement);
}

at::Tensor labels_of(Batch& batch, const Placement& placement) {
  return labels_of(batch, micro_batches_of(batch, 1).front(), placement);
}

void move_to(const Network& network, c10::Device device) {
  for (const at::Tensor& tensor : network.state()) {
    tensor.set_data(tensor.to(device));
  }
  for (const NamedTensor& parameter : network.parameters()) {
    parameter.tensor.set_data(parameter.tensor.data().to(device));
  }
}

Layout record_layout(const std::vector<NamedTensor>& parameters,
                     const std::function<void()>& forward) {
  std::vector<ParameterSize> sizes;
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor& tensor = parameter.tensor;
    sizes.push_back({parameter.name, tensor.numel(), tensor.dim() > 1 ? tensor.size(0) : 0});
    tensors.push_back(parameter.tensor);
  }
  const at::NoGradGuard no_grad;
  std::vector<std::size_t> reads;
  const auto run = [&] {
    forward();
    return at::Tensor();
  };
  ForwardGate(tensors).run(run, [&](std::size_t parameter) { reads.push_back(parameter); });
  return make_layout(sizes, reads);
}

Layout record_layout(Network& network, const at::Tensor& samples, const at::Tensor& labels) {
  return record_layout(network.parameters(), [&] { network.loss(samples, labels); });
}

std::vector<at::Tensor> parameters_in_order(const std::vector<NamedTensor>& parameters,
                                            const Layout& layout) {
  std::vector<at::Tensor> tensors;
  for (const std::size_t index : layout.order) {
    tensors.push_back(parameters[index].tensor);
  }
  return tensors;
}

std::vector<at::Tensor> parameters_in_order(const Network& network, const Layout& layout) {
  return parameters_in_order(network.parameters(), layout);
}

}  // namespace sluice
