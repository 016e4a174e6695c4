#pragma once

#include <cstddef>

namespace sluice {

// Has so many bytes brought into the cache. They need not be there: it is a hint.
inline void prefetch(const void* what, std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  for (std::size_t offset = 0; offset < bytes; offset += kCacheLine) {
    __builtin_prefetch(static_cast<const std::byte*>(what) + offset);
  }
}

}  // namespace sluice
