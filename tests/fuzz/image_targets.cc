// Readers of images.
#include <array>

#include "data/images/image.h"
#include "fuzz/target.h"
#include "support/image_files.h"

namespace sluice::fuzz {
namespace {

std::vector<std::string> image_seeds() {
  const Bytes8 rows = noise(3 * 8 * 6);
  return {png_file(8, 6, rows), jpeg_file(8, 6, rows)};
}

constexpr std::array kImageTargets{
    Target{"image", image_seeds,
           [](const std::string& input, const std::filesystem::path& /*folder*/) {
             return answer_of(decode_image(input));
           }},
};

}  // namespace

std::span<const Target> image_targets() { return kImageTargets; }

}  // namespace sluice::fuzz
