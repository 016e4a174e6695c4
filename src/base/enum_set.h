#pragma once

#include <cstdint>
#include <initializer_list>

namespace sluice {

// Some of the values of an enum that has at most 32, from 0 on.
template <class E>
class EnumSet {
 public:
  constexpr EnumSet(std::initializer_list<E> values) {
    for (const E value : values) {
      bits_ |= bit(value);
    }
  }

  constexpr bool contains(E value) const { return (bits_ & bit(value)) != 0; }

 private:
  static constexpr std::uint32_t bit(E value) {
    return std::uint32_t{1} << static_cast<unsigned>(value);
  }

  std::uint32_t bits_ = 0;
};

}  // namespace sluice
