#include "drivers/hub/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "base/check.h"

namespace sluice {
namespace {

template <class F>
decltype(auto) with_type(NumberType type, F f) {
  switch (type) {
    case NumberType::kFloat32:
      return f(float{});
    case NumberType::kFloat64:
      return f(double{});
    case NumberType::kInt8:
      return f(std::int8_t{});
    case NumberType::kUint8:
      return f(std::uint8_t{});
    case NumberType::kInt16:
      return f(std::int16_t{});
    case NumberType::kInt32:
      return f(std::int32_t{});
    case NumberType::kInt64:
      return f(std::int64_t{});
  }
  fail_check("there is no such type");
}

template <class T>
T combined(T a, T b, Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<T>(a + b);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kProduct:
      return static_cast<T>(a * b);
  }
  fail_check("there is no such reduction");
}

}  // namespace

std::size_t bytes_of(const Numbers& numbers) {
  return numbers.count * with_type(numbers.type, [](auto zero) { return sizeof zero; });
}

void reduce_into(const Numbers& numbers, const std::string& others, Reduction reduction) {
  if (others.size() != bytes_of(numbers)) {
    throw std::runtime_error(fmt::format("an all-reduce of {} bytes got {} from another process",
                                         bytes_of(numbers), others.size()));
  }
  with_type(numbers.type, [&](auto zero) {
    using T = decltype(zero);
    T* const own = static_cast<T*>(numbers.data);
    for (std::size_t i = 0; i < numbers.count; ++i) {
      T other{};
      std::memcpy(&other, others.data() + i * sizeof(T), sizeof(T));
      own[i] = combined(own[i], other, reduction);
    }
  });
}

}  // namespace sluice
