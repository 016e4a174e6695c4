#include "data/images/image.h"

namespace sluice {
namespace {

constexpr const char* kHowToGet =
    "this build reads no images: install libjpeg and libpng (Debian: apt-get install libjpeg-dev "
    "libpng-dev), then build again";

}  // namespace

Result<Image> decode_image(std::string_view /*bytes*/) { return Error(kHowToGet); }

ImageSupport image_support() { return {"", kHowToGet}; }

}  // namespace sluice
