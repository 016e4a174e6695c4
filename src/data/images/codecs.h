#pragma once

#include "data/images/image.h"

// The two formats; decode_image() tells them apart.
namespace sluice {

// No image of any data set is larger; a corrupt header may claim more than the memory holds.
inline constexpr std::size_t kMostPixels = 100'000'000;

// An image of this size without its pixels, or why there can be none.
Result<Image> blank_image(std::size_t width, std::size_t height);

Error image_error(std::size_t offset, const std::string& what);

Result<Image> decode_jpeg(std::string_view bytes);
Result<Image> decode_png(std::string_view bytes);

}  // namespace sluice
