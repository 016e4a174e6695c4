#include "torch/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/empty_like.h>

namespace sluice {

DropoutImpl::DropoutImpl(double share) : share_(share) {}

at::Tensor DropoutImpl::forward(const at::Tensor& x) {
  if (!is_training()) {
    return x;
  }
  const double kept = 1 - share_;
  return x * at::empty_like(x).bernoulli_(kept, generator_on(x.device())).div_(kept);
}

void DropoutImpl::reseed(std::uint64_t seed) {
  seed_ = seed;
  if (random_.defined()) {
    random_.set_current_seed(seed_);
  }
}

const at::Generator& DropoutImpl::generator_on(c10::Device device) {
  if (!random_.defined() || random_.device() != device) {
    random_ = device.is_cpu() ? at::detail::createCPUGenerator()
                              : at::globalContext().defaultGenerator(device).clone();
    random_.set_current_seed(seed_);
  }
  return random_;
}

}  // namespace sluice
