#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "data/images/image.h"
#include "support/image_files.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Bytes8 decoded(const std::string& file, std::size_t width, std::size_t height) {
  const auto image = decode_image(file);
  EXPECT_TRUE(image) << (image ? "" : image.error().message());
  if (!image) {
    return {};
  }
  EXPECT_EQ(image->width, width);
  EXPECT_EQ(image->height, height);
  return image->pixels;
}

std::string complaint(std::string_view bytes) {
  const auto image = decode_image(bytes);
  return image ? "" : image.error().message();
}

TEST(DecodeTest, PngKeepsItsColours) {
  const Bytes8 colours = noise(std::size_t{5} * 4 * 3);
  EXPECT_EQ(decoded(png_file(5, 4, colours), 5, 4), colours);
  EXPECT_EQ(decoded(png_file(5, 4, colours, {.interlace = PNG_INTERLACE_ADAM7}), 5, 4), colours);
}

TEST(DecodeTest, GreyPngBecomesColoured) {
  EXPECT_EQ(decoded(png_file(2, 1, {7, 200}, {.colours = PNG_COLOR_TYPE_GRAY}), 2, 1),
            (Bytes8{7, 7, 7, 200, 200, 200}));
  EXPECT_EQ(decoded(png_file(3, 1, {0xa0}, {.colours = PNG_COLOR_TYPE_GRAY, .bits = 1}), 3, 1),
            (Bytes8{255, 255, 255, 0, 0, 0, 255, 255, 255}));
}

TEST(DecodeTest, PngWithAPaletteBecomesColoured) {
  const PngKind kind{.colours = PNG_COLOR_TYPE_PALETTE,
                     .bits = 2,
                     .palette = {{1, 2, 3}, {40, 50, 60}, {250, 251, 252}}};
  EXPECT_EQ(decoded(png_file(3, 1, {0x18}, kind), 3, 1),
            (Bytes8{1, 2, 3, 40, 50, 60, 250, 251, 252}));
}

TEST(DecodeTest, PngOf16BitsKeepsTheUpper8) {
  Bytes8 rows;
  Bytes8 expected;
  for (int i = 0; i < 256; i += 5) {
    for (int c = 0; c < 3; ++c) {
      rows.insert(rows.end(), {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i)});
      expected.push_back(static_cast<std::uint8_t>(i));
    }
  }
  const auto width = static_cast<png_uint_32>(expected.size() / 3);
  EXPECT_EQ(decoded(png_file(width, 1, rows, {.bits = 16}), width, 1), expected);
}

TEST(DecodeTest, WhatIsTransparentBecomesOpaque) {
  EXPECT_EQ(
      decoded(png_file(2, 1, {9, 8, 7, 0, 6, 5, 4, 128}, {.colours = PNG_COLOR_TYPE_RGBA}), 2, 1),
      (Bytes8{9, 8, 7, 6, 5, 4}));
}

void expect_about(const Bytes8& actual, const Bytes8& colour) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], colour[i % 3], 3) << i;
  }
}

Bytes8 repeated(const Bytes8& pixel, std::size_t times) {
  Bytes8 all;
  for (std::size_t i = 0; i < times; ++i) {
    all.insert(all.end(), pixel.begin(), pixel.end());
  }
  return all;
}

TEST(DecodeTest, JpegOfAnyKindBecomesColoured) {
  const auto file = [](const Bytes8& pixel, JpegKind kind) {
    kind.components = static_cast<int>(pixel.size());
    return jpeg_file(19, 9, repeated(pixel, 19 * 9), kind);
  };
  expect_about(decoded(file({200, 30, 90}, {}), 19, 9), {200, 30, 90});
  expect_about(decoded(file({200, 30, 90}, {.progressive = true}), 19, 9), {200, 30, 90});
  expect_about(decoded(file({77}, {.colours = JCS_GRAYSCALE}), 19, 9), {77, 77, 77});
  // Adobe's files store how much light the inks leave, others how much ink there is.
  expect_about(decoded(file({255, 100, 0, 128}, {.colours = JCS_CMYK}), 19, 9), {128, 50, 0});
  expect_about(decoded(file({255, 100, 0, 128}, {.colours = JCS_CMYK, .adobe = false}), 19, 9),
               {0, 77, 127});
}

class DamageTest : public testing::TestWithParam<std::string> {};

TEST_P(DamageTest, WhereverTheFileEndsIsNoticed) {
  const std::string& whole = GetParam();
  ASSERT_EQ(complaint(whole), "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    ASSERT_THAT(complaint(cut), StartsWith("offset ")) << length;
    ASSERT_THAT(complaint(cut), HasSubstr("expected ")) << length;
  }
}

// Returns an image or an error; never crashes or hangs.
TEST_P(DamageTest, WhateverIsWrongIsSurvived) {
  const std::string& whole = GetParam();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int wrong : {0, 1, 127, 255}) {
      std::string file = whole;
      file[at] = static_cast<char>(static_cast<unsigned char>(file[at]) ^ wrong);
      const auto image = decode_image(file);
      if (image) {
        ASSERT_EQ(image->pixels.size(), image->width * image->height * 3);
      }
    }
  }
}

std::string kind_name(const testing::TestParamInfo<std::string>& info) {
  static const std::vector<std::string> kNames{"png",  "interlaced",  "palette",
                                               "jpeg", "progressive", "inks"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(
    Formats, DamageTest,
    testing::Values(
        png_file(7, 5, noise(105)), png_file(7, 5, noise(105), {.interlace = PNG_INTERLACE_ADAM7}),
        png_file(8, 3, noise(3),
                 {.colours = PNG_COLOR_TYPE_PALETTE, .bits = 1, .palette = {{1, 2, 3}, {4, 5, 6}}}),
        jpeg_file(9, 7, noise(189)), jpeg_file(9, 7, noise(189), {.progressive = true}),
        jpeg_file(9, 7, noise(252), {.colours = JCS_CMYK, .components = 4})),
    kind_name);

TEST(DecodeTest, WhatIsNoImageIsSaidToBeNone) {
  EXPECT_THAT(complaint(""), StartsWith("offset 0: expected the beginning of a JPEG (ff d8) or a "
                                        "PNG (89 50 4e 47 0d 0a 1a 0a), found nothing"));
  EXPECT_THAT(complaint("GIF89a"), HasSubstr("found 47 49 46 38 39 61"));
}

// A corrupt header must not make us allocate that much memory.
TEST(DecodeTest, AHugeImageIsRefusedBeforeItsPixelsAreMade) {
  std::string png = png_file(7, 5, noise(105));
  png.replace(16, 8, std::string("\0\xff\xff\xff\0\xff\xff\xff", 8));
  const auto crc =
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17));
  for (std::size_t i = 0; i < 4; ++i) {
    png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  }
  EXPECT_NE(complaint(png), "");
  std::string jpeg = jpeg_file(9, 7, noise(189));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xfe\xfe\xfe\xfe");
  EXPECT_THAT(complaint(jpeg), HasSubstr("found 65278 x 65278"));
}

}  // namespace
}  // namespace sluice
