#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"

namespace sluice {

// Bytes in flight, or only their number if the run has no numbers. A holder may read them; the
// owner of the memory may write to it again once the last holder has let go.
//
// It takes a word, since in a simulation of many hosts millions of them wait at a time.
class Payload {
 public:
  Payload() = default;
  explicit Payload(Bytes size) : word_(static_cast<std::uintptr_t>(size) << 1U | kOnlySize) {}
  Payload(std::span<const float> values, std::shared_ptr<const void> hold)
      : Payload(std::as_bytes(values), std::move(hold)) {}
  Payload(std::span<const std::byte> bytes, std::shared_ptr<const void> hold)
      : word_(reinterpret_cast<std::uintptr_t>(new Content{bytes, std::move(hold)})) {}

  Payload(const Payload& other) : word_(other.word_) {
    if (!only_size()) {
      word_ = reinterpret_cast<std::uintptr_t>(new Content(content()));
    }
  }
  Payload(Payload&& other) noexcept : word_(std::exchange(other.word_, kOnlySize)) {}
  Payload& operator=(Payload other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~Payload() {
    if (!only_size()) {
      delete &content();
    }
  }

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

  Bytes size() const {
    return only_size() ? static_cast<Bytes>(word_ >> 1U)
                       : static_cast<Bytes>(content().bytes.size());
  }
  bool has_data() const { return data() != nullptr; }
  std::span<const float> values() const {
    return {reinterpret_cast<const float*>(data()), static_cast<std::size_t>(size() / kFloatBytes)};
  }
  std::span<const std::byte> bytes() const { return {data(), static_cast<std::size_t>(size())}; }
  // The same bytes, kept alive by another object (a loan that reports its end, or a copy).
  Payload held_by(std::shared_ptr<const void> hold) const { return {bytes(), std::move(hold)}; }

 private:
  struct Content {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> hold;
  };

  static constexpr std::uintptr_t kOnlySize = 1;

  bool only_size() const { return (word_ & kOnlySize) != 0; }
  Content& content() const { return *reinterpret_cast<Content*>(word_); }
  const std::byte* data() const { return only_size() ? nullptr : content().bytes.data(); }

  std::uintptr_t word_ = kOnlySize;  // where the content is; or twice the size, and this bit
};

}  // namespace sluice
