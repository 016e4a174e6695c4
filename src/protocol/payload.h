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
      : data_(reinterpret_cast<const std::byte*>(values.data())),
        size_(static_cast<Bytes>(values.size_bytes())),
        hold_(std::move(hold)) {}

  Payload(std::span<const std::byte> bytes, std::shared_ptr<const void> hold)
      : data_(bytes.data()), size_(static_cast<Bytes>(bytes.size())), hold_(std::move(hold)) {}

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
    return {reinterpret_cast<const float*>(data_), static_cast<std::size_t>(size_ / kFloatBytes)};
  }
  std::span<const std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_)}; }
  // The same bytes, kept alive by another object (a loan that reports its end, or a copy).
  Payload held_by(std::shared_ptr<const void> hold) const {
    Payload p = *this;
    p.hold_ = std::move(hold);
    return p;
  }

 private:
  const std::byte* data_ = nullptr;
  Bytes size_ = 0;
  std::shared_ptr<const void> hold_;
};

}  // namespace sluice
