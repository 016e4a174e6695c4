#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"

namespace sluice {

// Bytes in flight, or only their number if the run has no numbers. A holder may read them; the
// owner of the memory may write to it again once the last holder has let go.
class Payload {
 public:
  Payload() = default;
  explicit Payload(Bytes size) : size_(size) {}
  Payload(std::span<const float> values, std::shared_ptr<const void> hold)
      : Payload(std::as_bytes(values), std::move(hold)) {}
  Payload(std::span<const std::byte> bytes, std::shared_ptr<const void> hold)
      : data_(std::move(hold), bytes.data()), size_(static_cast<Bytes>(bytes.size())) {}

  static Payload owning(std::vector<float> values) {
    auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    const std::span<const float> view(*kept);
    return {view, std::move(kept)};
  }
  static Payload owning(std::vector<std::byte> bytes) {
    auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    const std::span<const std::byte> view(*kept);
    return {view, std::move(kept)};
  }

  Bytes size() const { return size_; }
  bool has_data() const { return data_ != nullptr; }
  std::span<const float> values() const {
    return {reinterpret_cast<const float*>(data_.get()),
            static_cast<std::size_t>(size_ / kFloatBytes)};
  }
  std::span<const std::byte> bytes() const {
    return {data_.get(), static_cast<std::size_t>(size_)};
  }
  // The same bytes, kept alive by another object (a loan that reports its end, or a copy).
  Payload held_by(std::shared_ptr<const void> hold) const { return {bytes(), std::move(hold)}; }

 private:
  std::shared_ptr<const std::byte> data_;  // points at the bytes and holds their owner
  Bytes size_ = 0;
};

}  // namespace sluice
