#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/prefetch.h"

namespace sluice {

// Gives each object a small number for as long as it is in flight; numbers are reused.
template <class T>
class Slots {
 public:
  std::uint32_t put(T&& item) {
    const std::uint32_t slot = claim();
    items_[slot] = std::move(item);
    return slot;
  }
  // A slot with a new item, or with one as its last user left it.
  std::uint32_t claim() {
    if (free_.empty()) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  T& operator[](std::uint32_t slot) { return items_[slot]; }
  const T& operator[](std::uint32_t slot) const { return items_[slot]; }

  T take(std::uint32_t slot) {
    free_.push_back(slot);
    return std::move(items_[slot]);
  }
  // Has the item brought into the cache, if there is one of that number.
  void prefetch(std::uint32_t slot) const {
    if (slot < items_.size()) {
      sluice::prefetch(&items_[slot], sizeof(T));
    }
  }
  // Without moving the item, which stays until the slot is used again.
  void free(std::uint32_t slot) { free_.push_back(slot); }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sluice
