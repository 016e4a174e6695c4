#pragma once

#include <cstdint>

namespace sluice {

// Codec top-k: of each block of values the largest are sent. The defaults are those of SparseLoCo
// (Sarfi et al., 2025).
struct TopKOptions {
  std::int64_t block = 4096;
  std::int64_t kept = 64;  // of each block; of a shorter one, all if there are no more
  std::int64_t bits = 2;   // of a value that is sent: 2, or 32 for a float

  bool operator==(const TopKOptions&) const = default;
};

}  // namespace sluice
