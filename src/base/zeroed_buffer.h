#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace sluice {

// An array of zeros, which must be a valid value of T. Untouched parts take no memory, so a node
// that keeps only part of the parameters can index its buffers like the whole model.
template <class T>
class ZeroedArray {
 public:
  explicit ZeroedArray(std::size_t size)
      : data_(static_cast<T*>(std::calloc(size > 0 ? size : 1, sizeof(T)))), size_(size) {
    if (data_ == nullptr) {
      throw std::bad_alloc();
    }
  }

  std::span<T> values() const { return {data_.get(), size_}; }
  T& operator[](std::size_t index) const { return data_.get()[index]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  std::unique_ptr<T, Free> data_;
  std::size_t size_;
};

using ZeroedBuffer = ZeroedArray<float>;

}  // namespace sluice
