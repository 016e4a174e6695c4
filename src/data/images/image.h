#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// All that Sluice sees of the libraries that read images. A build without them has the same
// functions, which say how to get them.
namespace sluice {

struct Image {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<std::uint8_t> pixels;  // red, green, blue; row after row
};

// A JPEG or PNG of any kind as colours of 8 bits: what is grey or has a palette becomes coloured,
// what has more bits loses them, what is transparent becomes opaque. Errors tell the offset and
// what was expected; the caller knows the file.
Result<Image> decode_image(std::string_view bytes);

// What `sluice doctor` reports.
struct ImageSupport {
  std::string libraries;  // empty: none
  std::string advice;     // what to install; empty if nothing is missing
};
ImageSupport image_support();

}  // namespace sluice
