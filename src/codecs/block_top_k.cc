#include "codecs/block_top_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "codecs/bf16.h"
#include "codecs/bits.h"
#include "codecs/top_k.h"

namespace sluice {
namespace {

constexpr std::size_t kLevels = 2;

std::size_t bytes_for(std::size_t bits) { return (bits + 7) / 8; }

bool bit_at(const std::byte* bytes, std::size_t bit) {
  return (bytes[bit / 8] >> (bit % 8) & std::byte{1}) != std::byte{0};
}

void set_bit(std::byte* bytes, std::size_t bit) { bytes[bit / 8] |= std::byte{1} << (bit % 8); }

// The `width` bits from `first` on, the lowest first.
std::uint32_t bits_at(const std::byte* bytes, std::size_t first, std::size_t width) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= static_cast<std::uint32_t>(bit_at(bytes, first + i)) << i;
  }
  return value;
}

// Into bits that are zero.
void put_bits(std::byte* bytes, std::size_t first, std::size_t width, std::uint32_t value) {
  for (std::size_t i = 0; i < width; ++i) {
    if ((value >> i & 1U) != 0) {
      set_bit(bytes, first + i);
    }
  }
}

// In two halves: the mean of those below the mean of all, and that of the others.
class Levels {
 public:
  Levels(std::span<const float> values, std::span<const std::uint32_t> positions) {
    std::array<double, kLevels> sums{};
    std::array<double, kLevels> counts{};
    double all = 0;
    for (const std::uint32_t position : positions) {
      all += std::abs(static_cast<double>(values[position]));
    }
    split_ = all / static_cast<double>(positions.size());
    for (const std::uint32_t position : positions) {
      const std::size_t level = level_of(values[position]);
      sums[level] += std::abs(static_cast<double>(values[position]));
      ++counts[level];
    }
    for (std::size_t l = 0; l < kLevels; ++l) {
      levels_[l] = static_cast<float>(counts[l] > 0 ? sums[l] / counts[l] : split_);
    }
  }

  void write(std::byte* bytes) const { Bf16::write(levels_, bytes); }
  std::uint32_t code_of(float value) const {
    return static_cast<std::uint32_t>(level_of(value)) | (std::signbit(value) ? kNegative : 0U);
  }

  static float value_of(std::uint32_t code, const std::byte* levels) {
    const float magnitude = Bf16(levels, 1)[code & 1U];
    return (code & kNegative) != 0 ? -magnitude : magnitude;
  }

 private:
  static constexpr std::uint32_t kNegative = 2;

  std::size_t level_of(float value) const {
    return std::abs(static_cast<double>(value)) >= split_ ? 1 : 0;
  }

  double split_ = 0;
  std::array<float, kLevels> levels_{};
};

}  // namespace

// Where the parts of a block's code begin.
struct BlockTopK::Layout {
  std::size_t kept = 0;
  std::size_t low_bits = 0;   // of a position
  std::size_t upper = 0;      // the first bit of the string that has the upper ones
  std::size_t upper_end = 0;  // likewise, the end of it; 0: there are no positions
  std::size_t levels = 0;     // bytes from here on
  std::size_t values = 0;
  std::size_t end = 0;
};

BlockTopK::BlockTopK(const TopKOptions& options)
    : block_(static_cast<std::size_t>(options.block)),
      kept_(static_cast<std::size_t>(options.kept)),
      floats_(options.bits == 32) {
  sluice::check(options.block > 0 && options.kept > 0, "a block has values, and some are sent");
  sluice::check(options.bits == 2 || options.bits == 32, "a value takes 2 or 32 bits");
}

BlockTopK::Layout BlockTopK::layout_of(std::size_t length) const {
  Layout layout{.kept = std::min(kept_, length)};
  if (layout.kept < length) {
    layout.low_bits = std::bit_width(length / layout.kept) - 1U;
    layout.upper = layout.kept * layout.low_bits;
    layout.upper_end = layout.upper + layout.kept + ((length - 1) >> layout.low_bits);
  }
  layout.levels = bytes_for(layout.upper_end);
  layout.values = layout.levels + (floats_ ? 0 : kLevels * sizeof(std::uint16_t));
  layout.end = layout.values + (floats_ ? layout.kept * sizeof(float) : bytes_for(2 * layout.kept));
  return layout;
}

Bytes BlockTopK::size(std::int64_t count) const {
  const std::size_t whole = static_cast<std::size_t>(count) / block_;
  const std::size_t rest = static_cast<std::size_t>(count) % block_;
  return static_cast<Bytes>((whole > 0 ? whole * layout_of(block_).end : 0) +
                            (rest > 0 ? layout_of(rest).end : 0));
}

std::vector<std::byte> BlockTopK::take(std::span<float> values) const {
  std::vector<std::byte> code(static_cast<std::size_t>(size(std::ssize(values))));
  std::byte* at = code.data();
  for (std::size_t begin = 0; begin < values.size(); begin += block_) {
    const auto block = values.subspan(begin, std::min(block_, values.size() - begin));
    take_block(block, at);
    at += layout_of(block.size()).end;
  }
  return code;
}

void BlockTopK::take_block(std::span<float> block, std::byte* code) const {
  const Layout layout = layout_of(block.size());
  const std::vector<std::uint32_t> positions = top_k(block, layout.kept);
  if (layout.upper_end > 0) {
    for (std::size_t i = 0; i < layout.kept; ++i) {
      put_bits(code, i * layout.low_bits, layout.low_bits, positions[i]);
      set_bit(code, layout.upper + (positions[i] >> layout.low_bits) + i);
    }
  }
  if (floats_) {
    for (std::size_t i = 0; i < layout.kept; ++i) {
      store(code + layout.values, i, std::exchange(block[positions[i]], 0.0F));
    }
    return;
  }
  const Levels levels(block, positions);
  levels.write(code + layout.levels);
  for (std::size_t i = 0; i < layout.kept; ++i) {
    float& value = block[positions[i]];
    const std::uint32_t chosen = levels.code_of(value);
    put_bits(code + layout.values, 2 * i, 2, chosen);
    value -= Levels::value_of(chosen, code + layout.levels);
  }
}

template <class Add>
Result<void> BlockTopK::read_block(const std::byte* code, std::size_t length, Add add) const {
  const Layout layout = layout_of(length);
  std::size_t next = layout.upper;  // bit of the upper string
  std::size_t least = 0;
  for (std::size_t i = 0; i < layout.kept; ++i) {
    std::size_t position = i;
    if (layout.upper_end > 0) {
      while (next < layout.upper_end && !bit_at(code, next)) {
        ++next;
      }
      if (next == layout.upper_end) {
        return Error(fmt::format("top-k: {} positions of {}; corrupt in transit", i, layout.kept));
      }
      position = ((next - layout.upper - i) << layout.low_bits) |
                 bits_at(code, i * layout.low_bits, layout.low_bits);
      ++next;
    }
    if (position < least || position >= length) {
      return Error(
          fmt::format("top-k, entry {}: position {}, expected {} ... {}; corrupt in "
                      "transit",
                      i, position, least, length - 1));
    }
    least = position + 1;
    add(position,
        floats_ ? load<float>(code + layout.values, i)
                : Levels::value_of(bits_at(code + layout.values, 2 * i, 2), code + layout.levels));
  }
  return {};
}

template <class Add>
Result<void> BlockTopK::read(std::span<const std::byte> code, std::size_t count, Add add) const {
  const Bytes expected = size(static_cast<std::int64_t>(count));
  if (static_cast<Bytes>(code.size()) != expected) {
    return Error(fmt::format("top-k: {} bytes, expected {} for {} values; corrupt in transit",
                             code.size(), expected, count));
  }
  const std::byte* at = code.data();
  for (std::size_t begin = 0; begin < count; begin += block_) {
    const std::size_t length = std::min(block_, count - begin);
    auto valid = read_block(
        at, length, [&](std::size_t position, float value) { add(begin + position, value); });
    if (!valid) {
      return valid;
    }
    at += layout_of(length).end;
  }
  return {};
}

Result<void> BlockTopK::check(std::span<const std::byte> code, std::int64_t count) const {
  return read(code, static_cast<std::size_t>(count), [](std::size_t, float) {});
}

void BlockTopK::add(std::span<const std::byte> code, std::span<float> sum) const {
  const auto valid =
      read(code, sum.size(), [&](std::size_t position, float value) { sum[position] += value; });
  if (!valid) {
    fail_check(valid.error().message());
  }
}

}  // namespace sluice
