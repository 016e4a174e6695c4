#pragma once

#include <cstdint>
#include <functional>

namespace sluice {

// Floating-point operations of the convolutions and matrix products that `work` does on this
// thread; an addition and a multiplication are two. All else is small beside them and left out.
// Nobody else may compute meanwhile: oneDNN is off for all threads.
std::int64_t count_flops(const std::function<void()>& work);

}  // namespace sluice
