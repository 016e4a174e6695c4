#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"

namespace sluice {

// Bytes on their way, or only their number where a run has no numbers at all. Whoever holds a
// payload may read it; the owner of the memory may write to it again when the last holder lets go.
class Payload {
 public:
  Payload() = default;
  explicit Payload(Bytes size) : size_(size) {}
  Payload(std::span<const float> values, std::shared_ptr<const void> hold)
      : data_(reinterpret_cast<const std::byte*>(values.data())),
        size_(static_cast<Bytes>(values.size_bytes())),
        hold_(std::move(hold)) {}

  static Payload owning(std::shared_ptr<const std::vector<float>> values) {
    const std::span<const float> view(*values);
    return {view, std::move(values)};
  }

  Bytes size() const { return size_; }
  bool has_data() const { return data_ != nullptr; }
  std::span<const float> values() const {
    return {reinterpret_cast<const float*>(data_), static_cast<std::size_t>(size_ / kFloatBytes)};
  }
  // The same bytes, kept alive by something else (a loan that reports its end, a copy).
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
