#pragma once

#include <cstdint>

namespace sluice {

// Half-open range of elements (floats) of a flat buffer.
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

// Part `index` of `parts` nearly equal parts of `whole`; the first parts are the longer ones.
constexpr Range part_of(Range whole, std::int64_t parts, std::int64_t index) {
  const std::int64_t share = whole.size() / parts;
  const std::int64_t longer = whole.size() % parts;
  const std::int64_t begin = whole.begin + index * share + (index < longer ? index : longer);
  return {begin, begin + share + (index < longer ? 1 : 0)};
}

}  // namespace sluice
