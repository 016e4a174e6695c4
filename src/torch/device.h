#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <string>

namespace sluice {

// The device of a worker: "cpu", one of all that there are by turns for "cuda", or "cuda:N". The
// text must be one that torch_device() gives.
c10::Device device_of(const std::string& device, std::size_t rank);

}  // namespace sluice
