#pragma once

#include "data/images/image.h"

// The two formats. decode_image() tells them apart.
namespace sluice {

// No data set has larger images, and a corrupt header may claim more than fits into memory.
inline constexpr std::size_t kMaxPixels = 100'000'000;

// An image of this size without pixels yet, or an error if the size is not allowed.
Result<Image> blank_image(std::size_t width, std::size_t height);

Error image_error(std::size_t offset, const std::string& what);

Result<Image> decode_jpeg(std::string_view bytes);
Result<Image> decode_png(std::string_view bytes);

}  // namespace sluice
