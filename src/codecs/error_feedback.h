#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/check.h"
#include "codecs/dense.h"

namespace sluice {

// Codes value + decay * residual and keeps as the new residual what the code lost. With decay 1
// nothing is lost for good. The residual belongs to the caller, who has one for each value that is
// coded again and again (indexed like the parameters, say) and passes the part that fits the
// values.
class ErrorFeedback final : public DenseCodec {
 public:
  ErrorFeedback(const DenseCodec& codec, std::span<float> residual, float decay = 1)
      : codec_(codec), residual_(residual), decay_(decay) {}

  Bytes encoded_size(std::int64_t count) const override { return codec_.encoded_size(count); }
  bool has_range() const override { return codec_.has_range(); }

  Magnitude look_at(std::span<const float> part, std::size_t first) const override {
    check(first + part.size() <= residual_.size(), "each value has a residual");
    const std::span<float> corrected = residual_.subspan(first, part.size());
    Magnitude largest = 0;
    in_blocks(part.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        corrected[i] = decay_ * corrected[i] + part[i];
      }
      const auto block = corrected.subspan(begin, end - begin);
      largest = std::max(largest, codec_.look_at(block, first + begin));
    });
    return largest;
  }

  void begin(Magnitude largest, std::span<std::byte> bytes) const override {
    codec_.begin(largest, bytes);
  }

  void write_part(std::span<const float> part, std::size_t first,
                  std::span<std::byte> bytes) const override {
    in_blocks(part.size(), [&](std::size_t begin, std::size_t end) {
      const auto block = residual_.subspan(first + begin, end - begin);
      codec_.write_part(block, first + begin, bytes);
      codec_.add_part(bytes, first + begin, -1.0F, block);
    });
  }

  void read_part(std::span<const std::byte> bytes, std::size_t first,
                 std::span<float> part) const override {
    codec_.read_part(bytes, first, part);
  }

  void add_part(std::span<const std::byte> bytes, std::size_t first, float scale,
                std::span<float> part) const override {
    codec_.add_part(bytes, first, scale, part);
  }

 private:
  const DenseCodec& codec_;
  std::span<float> residual_;
  float decay_;
};

}  // namespace sluice
