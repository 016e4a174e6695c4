#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// FNV-1a, 64 bits. Used to check whether two runs ended with the same bytes, and whether a file has
// those that were written. Of bytes in several parts, pass the hash of those before.
inline std::uint64_t hash_of(std::span<const std::byte> bytes,
                             std::uint64_t hash = 0xcbf29ce484222325) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace sluice
