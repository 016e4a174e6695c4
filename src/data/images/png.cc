#include <fmt/format.h>
#include <png.h>

#include <memory>

#include "data/images/codecs.h"

namespace sluice {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kFrame = 12;  // of a chunk: its length, name and checksum

// The library does not notice if something is missing behind the last row.
Result<void> check_complete(std::string_view bytes) {
  for (std::size_t at = kSignature;;) {
    const std::string_view rest = bytes.substr(at);
    if (rest.size() < kFrame) {
      return image_error(at, fmt::format("expected a chunk of at least {} bytes of a PNG, found {}",
                                         kFrame, rest.size()));
    }
    std::size_t length = 0;
    for (const char byte : rest.substr(0, 4)) {
      length = length * 256 + static_cast<std::uint8_t>(byte);
    }
    if (length > rest.size() - kFrame) {
      return image_error(at, fmt::format("expected a chunk of {} bytes of a PNG, found {}",
                                         length + kFrame, rest.size()));
    }
    if (rest.substr(4, 4) == "IEND") {
      return {};
    }
    at += length + kFrame;
  }
}

}  // namespace

Result<Image> decode_png(std::string_view bytes) {
  if (auto complete = check_complete(bytes); !complete) {
    return complete.error();
  }
  png_image info{};
  info.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> keeper(&info, png_image_free);
  const auto refused = [&] {
    return image_error(kSignature,
                       fmt::format("expected the chunks of a PNG, found: {}", info.message));
  };
  if (png_image_begin_read_from_memory(&info, bytes.data(), bytes.size()) == 0) {
    return refused();
  }
  auto image = blank_image(info.width, info.height);
  if (!image) {
    return image;
  }
  // 16-bit colours are sRGB too, not linear.
  info.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  info.format = PNG_FORMAT_RGBA;
  std::vector<std::uint8_t> rgba(PNG_IMAGE_SIZE(info));
  if (png_image_finish_read(&info, nullptr, rgba.data(), 0, nullptr) == 0) {
    return refused();
  }
  Image decoded = *std::move(image);
  decoded.pixels.reserve(rgba.size() / 4 * 3);
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    const auto pixel = rgba.begin() + static_cast<std::ptrdiff_t>(i);
    decoded.pixels.insert(decoded.pixels.end(), pixel, pixel + 3);
  }
  return decoded;
}

}  // namespace sluice
