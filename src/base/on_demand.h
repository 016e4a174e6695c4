#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace sluice {

// An array that allocates memory only around the elements in use. Meant for many arrays that each
// use a few of their elements.
template <class T>
class OnDemand {
 public:
  OnDemand(std::size_t size, T initial)
      : initial_(std::move(initial)), pages_((size + kPage - 1) / kPage) {}

  T& operator[](std::size_t index) {
    std::vector<T>& page = pages_[index / kPage];
    if (page.empty()) [[unlikely]] {
      page.assign(kPage, initial_);
    }
    return page[index % kPage];
  }

  std::size_t allocated() const {
    std::size_t elements = 0;
    for (const std::vector<T>& page : pages_) {
      elements += page.size();
    }
    return elements;
  }

 private:
  static constexpr std::size_t kPage = 16;

  T initial_;
  std::vector<std::vector<T>> pages_;
};

}  // namespace sluice
