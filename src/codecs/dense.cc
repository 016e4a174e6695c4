#include "codecs/dense.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "codecs/bf16.h"
#include "codecs/quantise.h"
#include "codecs/truncate16.h"

namespace sluice {
namespace {

// A format writes values, and reads single values times a scale. It takes the bits that the codec's
// traits say. A format with a range has a header, the step that all values share: it writes values
// by that step, and is read with the step as the scale.
template <Codec kCodec, class Format>
class CodecFor final : public DenseCodec {
 public:
  Bytes encoded_size(std::int64_t count) const override { return kTraits.size(count); }
  bool has_range() const override { return kHasRange; }

  Magnitude look_at(std::span<const float> part, std::size_t /*first*/) const override {
    return kHasRange ? largest_magnitude(part) : 0;
  }

  void begin(Magnitude largest, std::span<std::byte> bytes) const override {
    if constexpr (kHasRange) {
      store(bytes.data(), 0, Format::step_for(largest));
    }
  }

  void write_part(std::span<const float> part, std::size_t first,
                  std::span<std::byte> bytes) const override {
    std::byte* const codes = bytes.data() + place_of(part.size(), first, bytes.size());
    if constexpr (kHasRange) {
      Format::write(part, codes, load<float>(bytes.data(), 0));
    } else {
      Format::write(part, codes);
    }
  }

  void read_part(std::span<const std::byte> bytes, std::size_t first,
                 std::span<float> part) const override {
    each_of(reader(bytes, first, 1, part.size()), part.size(),
            [out = part.data()](std::size_t i, float value) { out[i] = value; });
  }

  void add_part(std::span<const std::byte> bytes, std::size_t first, float scale,
                std::span<float> part) const override {
    each_of(reader(bytes, first, scale, part.size()), part.size(),
            [sum = part.data()](std::size_t i, float value) { sum[i] += value; });
  }

 private:
  static constexpr const CodecTraits& kTraits = traits_of(kCodec);
  static constexpr bool kHasRange = kTraits.header_bytes > 0;

  // Where the code of value `first` begins.
  static std::size_t place_of(std::size_t count, std::size_t first, std::size_t bytes) {
    check(first % kCut == 0, "a part begins where a code may be cut");
    check(kTraits.size(static_cast<std::int64_t>(first + count)) <= static_cast<Bytes>(bytes),
          "a part lies inside its vector");
    return static_cast<std::size_t>(kTraits.size(static_cast<std::int64_t>(first)));
  }

  static Format reader(std::span<const std::byte> bytes, std::size_t first, float scale,
                       std::size_t count) {
    const std::byte* const codes = bytes.data() + place_of(count, first, bytes.size());
    return {codes, kHasRange ? scale * load<float>(bytes.data(), 0) : scale};
  }

  // Values that share a byte are read together: loops over bytes vectorise.
  template <class Take>
  static void each_of(const Format& values, std::size_t count, Take take) {
    constexpr std::size_t kPerByte = kTraits.bits_per_value < 8 ? 8 / kTraits.bits_per_value : 1;
    const std::size_t whole = count / kPerByte;
    for (std::size_t b = 0; b < whole; ++b) {
      if constexpr (kPerByte == 1) {
        take(b, values[b]);
      } else {
        for (std::size_t j = 0; j < kPerByte; ++j) {
          take(b * kPerByte + j, values.at(b, j));
        }
      }
    }
    for (std::size_t i = whole * kPerByte; i < count; ++i) {
      take(i, values[i]);
    }
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

void DenseCodec::check_sizes(std::size_t values, std::size_t bytes) const {
  check(encoded_size(static_cast<std::int64_t>(values)) == static_cast<Bytes>(bytes),
        "coded bytes fit the number of values");
}

void DenseCodec::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_sizes(values.size(), bytes.size());
  if (has_range()) {
    begin(look_at(values, 0), bytes);
    return write_part(values, 0, bytes);
  }
  in_blocks(values.size(), [&](std::size_t first, std::size_t end) {
    const auto block = values.subspan(first, end - first);
    look_at(block, first);
    write_part(block, first, bytes);
  });
}

void DenseCodec::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_sizes(values.size(), bytes.size());
  read_part(bytes, 0, values);
}

void DenseCodec::add(std::span<const std::byte> bytes, float scale, std::span<float> sum) const {
  check_sizes(sum.size(), bytes.size());
  add_part(bytes, 0, scale, sum);
}

std::unique_ptr<DenseCodec> make_dense_codec(Codec codec) {
  const auto* const found = std::ranges::find(kDenseCodecs, codec, &DenseRow::codec);
  check(found != kDenseCodecs.end(), "the codec is a dense one");
  return found->make();
}

}  // namespace sluice
