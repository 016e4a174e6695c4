#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <string>

namespace sluice {

// The device of a worker: "cpu", "cuda:N", or for "cuda" one of the machine's GPUs, assigned by
// rank in turn. `device` must be a result of torch_device().
c10::Device device_of(const std::string& device, std::size_t rank);

}  // namespace sluice
