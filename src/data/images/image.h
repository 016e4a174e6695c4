#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The interface to the image libraries. A build without them has the same functions, which then say
// how to get the libraries.
namespace sluice {

struct Image {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<std::uint8_t> pixels;  // red, green, blue; row after row
};

// Decodes a JPEG or PNG of any kind to 8-bit RGB: grey and palette images become coloured, more
// bits are dropped, transparent pixels become opaque. Errors name the offset and what was expected;
// the caller adds the file.
Result<Image> decode_image(std::string_view bytes);

// What `sluice doctor` reports.
struct ImageSupport {
  std::string libraries;  // empty if none
  std::string advice;     // what to install; empty if nothing is missing
};
ImageSupport image_support();

}  // namespace sluice
