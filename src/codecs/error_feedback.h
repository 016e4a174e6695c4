#pragma once

#include <cstddef>

#include "base/check.h"
#include "codecs/dense.h"

namespace sluice {

// Codes value + residual and keeps as the new residual what the code lost, so that nothing is lost
// for good. The residual belongs to the caller, who has one for each value that is coded again and
// again (indexed like the parameters, say) and passes the part that fits the values.
class ErrorFeedback final : public DenseCodec {
 public:
  ErrorFeedback(const DenseCodec& codec, std::span<float> residual)
      : codec_(codec), residual_(residual) {}

  Bytes encoded_size(std::int64_t count) const override { return codec_.encoded_size(count); }

  void encode(std::span<const float> values, std::span<std::byte> bytes) const override {
    check(values.size() == residual_.size(), "each value has a residual");
    for (std::size_t i = 0; i < values.size(); ++i) {
      residual_[i] += values[i];
    }
    codec_.encode(residual_, bytes);
    codec_.add(bytes, -1.0F, residual_);
  }

  void decode(std::span<const std::byte> bytes, std::span<float> values) const override {
    codec_.decode(bytes, values);
  }

  void add(std::span<const std::byte> bytes, float scale, std::span<float> sum) const override {
    codec_.add(bytes, scale, sum);
  }

 private:
  const DenseCodec& codec_;
  std::span<float> residual_;
};

}  // namespace sluice
