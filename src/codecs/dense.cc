#include "codecs/dense.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "codecs/bf16.h"
#include "codecs/quantise.h"
#include "codecs/truncate16.h"

namespace sluice {
namespace {

// A format writes a vector, and reads single values times a scale. It takes the bytes that the
// codec's traits say.
template <Codec kCodec, class Format>
class CodecFor final : public DenseCodec {
 public:
  Bytes encoded_size(std::int64_t count) const override { return traits_of(kCodec).size(count); }

  void encode(std::span<const float> values, std::span<std::byte> bytes) const override {
    check_sizes(values.size(), bytes.size());
    Format::write(values, bytes.data());
  }

  void decode(std::span<const std::byte> bytes, std::span<float> values) const override {
    check_sizes(values.size(), bytes.size());
    const Format decoded(bytes.data(), 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = decoded[i];
    }
  }

  void add(std::span<const std::byte> bytes, float scale, std::span<float> sum) const override {
    check_sizes(sum.size(), bytes.size());
    const Format scaled(bytes.data(), scale);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += scaled[i];
    }
  }

 private:
  static void check_sizes(std::size_t values, std::size_t bytes) {
    check(traits_of(kCodec).size(static_cast<std::int64_t>(values)) == static_cast<Bytes>(bytes),
          "coded bytes fit the number of values");
  }
};

struct DenseRow {
  Codec codec;
  std::unique_ptr<DenseCodec> (*make)();
};

template <Codec kCodec, class Format>
constexpr DenseRow row() {
  return {kCodec, []() -> std::unique_ptr<DenseCodec> {
            return std::make_unique<CodecFor<kCodec, Format>>();
          }};
}

constexpr std::array kDenseCodecs{
    row<Codec::kTruncate16, Truncate16>(), row<Codec::kBf16, Bf16>(),
    row<Codec::kQuantise8, Quantise<8>>(), row<Codec::kQuantise4, Quantise<4>>(),
    row<Codec::kQuantise2, Quantise<2>>(),
};

constexpr bool each_dense_codec_has_one_row() {
  return std::ranges::all_of(kCodecs, [](const CodecTraits& traits) {
    const auto rows = std::ranges::count(kDenseCodecs, traits.value, &DenseRow::codec);
    return rows == (traits.kind == CodecKind::kDense ? 1 : 0);
  });
}
static_assert(each_dense_codec_has_one_row());

}  // namespace

std::unique_ptr<DenseCodec> make_dense_codec(Codec codec) {
  const auto* const found = std::ranges::find(kDenseCodecs, codec, &DenseRow::codec);
  check(found != kDenseCodecs.end(), "the codec is a dense one");
  return found->make();
}

}  // namespace sluice
