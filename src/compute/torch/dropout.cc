#include "compute/torch/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>

namespace sluice {

DropoutImpl::DropoutImpl(double share) : share_(share), random_(at::detail::createCPUGenerator()) {}

at::Tensor DropoutImpl::forward(const at::Tensor& x) {
  if (!is_training()) {
    return x;
  }
  const double kept = 1 - share_;
  return x * at::empty_like(x).bernoulli_(kept, random_).div_(kept);
}

void DropoutImpl::reseed(std::uint64_t seed) { random_.set_current_seed(seed); }

}  // namespace sluice
