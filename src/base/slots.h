#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice {

// Gives each object a small number for as long as it is in flight; numbers are reused.
template <class T>
class Slots {
 public:
  std::uint32_t put(T item) {
    if (free_.empty()) {
      items_.push_back(std::move(item));
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    items_[slot] = std::move(item);
    return slot;
  }

  T& operator[](std::uint32_t slot) { return items_[slot]; }

  T take(std::uint32_t slot) {
    free_.push_back(slot);
    return std::move(items_[slot]);
  }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sluice
