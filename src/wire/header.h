#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/result.h"
#include "wire/message.h"

namespace sluice {

// The header of a message on the wire: these fields without gaps, integers in little-endian order.
//
//   4  magic "SLCE"       2  round         4  to
//   1  version            4  priority      4  chunk
//   1  kind               4  from          4  segment
//   1  flags                               8  iteration
//                                          8  payload bytes
//                                          8  slowest
//                                          8  weight, the bits of a double
//
// Flags: bit 0 is wants_return; the others are zero.
inline constexpr std::size_t kHeaderBytes = 61;

using Header = std::array<std::byte, kHeaderBytes>;

Header encode_header(const Message& message);

// Accepts only what encode_header produces; errors name the offset and what was expected there.
Result<Message> decode_header(std::span<const std::byte> bytes);

}  // namespace sluice
