#pragma once

#include <cstdint>

namespace sluice {

// A half-open range of elements (floats) in a flat buffer.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(const Range& other) const {
    return begin <= other.begin && other.end <= end;
  }
  constexpr bool operator==(const Range&) const = default;
};

// Part `index` when `whole` is cut into `parts` nearly equal parts; the longer parts come first.
constexpr Range part_of(Range whole, std::int64_t parts, std::int64_t index) {
  const std::int64_t share = whole.size() / parts;
  const std::int64_t longer = whole.size() % parts;
  const std::int64_t begin = whole.begin + index * share + (index < longer ? index : longer);
  return {begin, begin + share + (index < longer ? 1 : 0)};
}

}  // namespace sluice
