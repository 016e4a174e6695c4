#pragma once

#include <cstddef>

namespace sluice::fuzz {

// Allocations above this fail with std::bad_alloc while the object lives. Under AddressSanitizer,
// which has an allocator of its own, its option max_allocation_size_mb is the limit instead.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

}  // namespace sluice::fuzz
