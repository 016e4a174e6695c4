#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
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
    std::unique_ptr<T[]>& page = pages_[index / kPage];
    if (page == nullptr) [[unlikely]] {
      allocate(page);
    }
    return page[index % kPage];
  }

  std::size_t allocated() const {
    return kPage *
           static_cast<std::size_t>(std::count_if(
               pages_.begin(), pages_.end(), [](const auto& page) { return page != nullptr; }));
  }

 private:
  // Apart, so that the access itself is inlined.
  [[gnu::noinline]] void allocate(std::unique_ptr<T[]>& page) const {
    page = std::make_unique<T[]>(kPage);
    std::fill_n(page.get(), kPage, initial_);
  }

  static constexpr std::size_t kPage = 32;

  T initial_;
  std::vector<std::unique_ptr<T[]>> pages_;
};

}  // namespace sluice
