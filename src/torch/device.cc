#include "torch/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include <charconv>

#include "torch/torch_learner.h"

namespace sluice {
namespace {

constexpr const char* kNumbered = "cuda:";

std::size_t gpus() {
  return at::hasCUDA() ? c10::impl::getDeviceGuardImpl(c10::kCUDA)->deviceCount() : 0;
}

}  // namespace

Result<std::string> torch_device(const std::string& asked) {
  const std::size_t there = gpus();
  if (asked == "auto") {
    return std::string(there > 0 ? "cuda" : "cpu");
  }
  if (asked == "cpu" || (asked == "cuda" && there > 0)) {
    return asked;
  }
  const std::string number = asked.starts_with(kNumbered) ? asked.substr(5) : "";
  std::size_t index = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), index);
  const bool is_number =
      !number.empty() && fault == std::errc{} && end == number.data() + number.size();
  if (asked != "cuda" && !is_number) {
    return Error(fmt::format("--device: \"{}\"; expected auto, cpu, cuda or cuda:NUMBER", asked));
  }
  if (there == 0) {
    return Error(fmt::format(
        "--device: {} needs a GPU, and {}; take --device cpu, or build against a LibTorch with "
        "CUDA on a machine with a GPU and its driver",
        asked, at::hasCUDA() ? "this machine shows none" : "this LibTorch finds none"));
  }
  if (index >= there) {
    return Error(fmt::format("--device: {}; this machine has cuda:0{}", asked,
                             there > 1 ? fmt::format(" to cuda:{}", there - 1) : " only"));
  }
  return asked;
}

c10::Device device_of(const std::string& device, std::size_t rank) {
  return device == "cuda" ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(rank % gpus()))
                          : c10::Device(device);
}

}  // namespace sluice
