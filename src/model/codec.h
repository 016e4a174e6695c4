#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "model/names.h"

namespace sluice {

// A new dense codec is a value here, its row in kCodecs and its row in codecs/dense.cc.
// docs/extending.md shows one.
enum class Codec : std::uint8_t {
  kNone,
  kTruncate16,  // the upper half of each float
  kBf16,        // the nearest bfloat16
  kQuantise8,   // a byte a value
  kQuantise4,   // 4 bits a value
  kQuantise2,   // 2 bits a value: up, down or neither
  kDgc,         // the largest values only: Deep Gradient Compression
  kTopK,        // the largest values of each block, in 2 bits each
  kPowerSgd,    // two factors of low rank of each matrix
  kCount,       // none: how many there are
};

enum class CodecKind : std::uint8_t {
  kPlain,   // floats as they are
  kDense,   // every value, in fewer bits
  kSparse,  // some of the values, with their positions
  // Likewise, in so few bits that a sum has no such code: every worker gathers the codes of all and
  // adds what they say.
  kGathered,
  // A matrix as two factors, which are floats and are summed one after the other. All else is
  // plain.
  kFactored,
};

// What the rest of Sluice has to know about a codec.
struct CodecTraits {
  Codec value;
  std::string_view name;
  CodecKind kind;
  // Of codecs that are plain or dense, and of factors:
  std::int64_t bits_per_value = 32;
  Bytes header_bytes = 0;       // before the values
  bool needs_feedback = false;  // loses more than training bears

  constexpr Bytes size(std::int64_t count) const {
    return header_bytes + (count * bits_per_value + 7) / 8;
  }
};

inline constexpr std::array kCodecs{
    CodecTraits{Codec::kNone, "none", CodecKind::kPlain},
    CodecTraits{Codec::kTruncate16, "truncate16", CodecKind::kDense, 16},
    CodecTraits{Codec::kBf16, "bf16", CodecKind::kDense, 16},
    CodecTraits{Codec::kQuantise8, "quantise8", CodecKind::kDense, 8, sizeof(float)},
    CodecTraits{Codec::kQuantise4, "quantise4", CodecKind::kDense, 4, sizeof(float), true},
    CodecTraits{Codec::kQuantise2, "quantise2", CodecKind::kDense, 2, sizeof(float), true},
    CodecTraits{Codec::kDgc, "dgc", CodecKind::kSparse},
    CodecTraits{Codec::kTopK, "top-k", CodecKind::kGathered, 32, 0, true},
    CodecTraits{Codec::kPowerSgd, "powersgd", CodecKind::kFactored, 32, 0, true},
};
static_assert(has_all_values(kCodecs), "each codec has one row, in the order of the enum");

inline constexpr std::array kCodecNames = names_in(kCodecs);

constexpr const CodecTraits& traits_of(Codec codec) {
  return kCodecs[static_cast<std::size_t>(codec)];
}

}  // namespace sluice
