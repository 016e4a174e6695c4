#include "fuzz/allocation.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace sluice::fuzz {
namespace {

// Of the thread, since operator new has no other way to know.
thread_local std::size_t most = std::numeric_limits<std::size_t>::max();

}  // namespace

AllocationLimit::AllocationLimit(std::size_t bytes) { most = bytes; }
AllocationLimit::~AllocationLimit() { most = std::numeric_limits<std::size_t>::max(); }

bool is_within_limit(std::size_t bytes) { return bytes <= most; }

}  // namespace sluice::fuzz

#if !defined(__SANITIZE_ADDRESS__) && !defined(SLUICE_LIBFUZZER)
void* operator new(std::size_t bytes) {
  void* memory = sluice::fuzz::is_within_limit(bytes) ? std::malloc(bytes) : nullptr;
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
#endif
