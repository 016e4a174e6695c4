#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

enum class NumberType : std::uint8_t { kFloat32, kFloat64, kInt8, kUint8, kInt16, kInt32, kInt64 };

// A view of memory that somebody else owns.
struct Numbers {
  void* data = nullptr;
  std::size_t count = 0;
  NumberType type = NumberType::kFloat32;
};

enum class Reduction : std::uint8_t { kSum, kMin, kMax, kProduct };

}  // namespace sluice
