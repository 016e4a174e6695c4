#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace sluice {

// A flat buffer of zeros. Memory is taken only for what is touched, so a node that keeps a part of
// the parameters can index its buffers like the whole.
class ZeroedBuffer {
 public:
  explicit ZeroedBuffer(std::size_t size)
      : data_(static_cast<float*>(std::calloc(size > 0 ? size : 1, sizeof(float)))), size_(size) {
    if (data_ == nullptr) {
      throw std::bad_alloc();
    }
  }

  std::span<float> values() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };

  std::unique_ptr<float, Free> data_;
  std::size_t size_;
};

}  // namespace sluice
