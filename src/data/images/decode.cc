#include <fmt/format.h>
#include <fmt/ranges.h>
#include <jpeglib.h>
#include <png.h>

#include <span>

#include "data/images/codecs.h"

namespace sluice {
namespace {

constexpr std::string_view kJpegBegins = "\xff\xd8";
constexpr std::string_view kPngBegins = "\x89PNG\r\n\x1a\n";

std::string in_hex(std::string_view bytes) {
  const std::span letters(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return fmt::format("{:02x}", fmt::join(letters, " "));
}

}  // namespace

Error image_error(std::size_t offset, const std::string& what) {
  return Error(
      fmt::format("offset {}: {}; the image is corrupt: replace or remove it", offset, what));
}

Result<Image> blank_image(std::size_t width, std::size_t height) {
  if (width == 0 || height == 0 || width > kMaxPixels / height) {
    return image_error(0, fmt::format("expected an image of 1 ... {} pixels, found {} x {}",
                                      kMaxPixels, width, height));
  }
  return Image{width, height, {}};
}

Result<Image> decode_image(std::string_view bytes) {
  if (bytes.starts_with(kJpegBegins)) {
    return decode_jpeg(bytes);
  }
  if (bytes.starts_with(kPngBegins)) {
    return decode_png(bytes);
  }
  const std::string_view found = bytes.substr(0, kPngBegins.size());
  return image_error(0, fmt::format("expected the beginning of a JPEG ({}) or a PNG ({}), found {}",
                                    in_hex(kJpegBegins), in_hex(kPngBegins),
                                    found.empty() ? "nothing" : in_hex(found)));
}

ImageSupport image_support() {
  return {fmt::format("libjpeg {}, libpng {}", JPEG_LIB_VERSION, PNG_LIBPNG_VER_STRING), ""};
}

}  // namespace sluice
