#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
// Must come after the headers above.
#include <jpeglib.h>
#include <png.h>

#include "base/random.h"

// Image files, written by the libraries themselves.
namespace sluice {

using Bytes8 = std::vector<std::uint8_t>;

struct PngKind {
  int colours = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  std::vector<png_color> palette = {};
  int interlace = PNG_INTERLACE_NONE;
};

// `rows` are packed as a PNG of this kind has them.
inline std::string png_file(png_uint_32 width, png_uint_32 height, const Bytes8& rows,
                            const PngKind& kind = {}) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep data, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))
            ->append(reinterpret_cast<const char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, kind.bits, kind.colours, kind.interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!kind.palette.empty()) {
    png_set_PLTE(png, info, kind.palette.data(), static_cast<int>(kind.palette.size()));
  }
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  const std::size_t stride = rows.size() / height;
  for (std::size_t y = 0; y < height; ++y) {
    pointers.push_back(const_cast<png_bytep>(rows.data() + y * stride));
  }
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

struct JpegKind {
  J_COLOR_SPACE colours = JCS_RGB;
  int components = 3;
  bool progressive = false;
  bool adobe = true;  // CMYK images: with Adobe's marker
  int quality = 95;
};

inline std::string jpeg_file(unsigned width, unsigned height, const Bytes8& rows,
                             const JpegKind& kind = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): the library's
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = kind.components;
  info.in_color_space = kind.colours;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kind.quality, TRUE);
  if (kind.progressive) {
    jpeg_simple_progression(&info);
  }
  if (kind.colours == JCS_CMYK) {
    info.write_Adobe_marker = kind.adobe ? TRUE : FALSE;
  }
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < height) {
    JSAMPROW row =
        const_cast<JSAMPROW>(rows.data()) + static_cast<std::size_t>(info.next_scanline) * width *
                                                static_cast<std::size_t>(kind.components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

inline Bytes8 noise(std::size_t size, std::uint64_t seed = 1) {
  Random random(seed);
  Bytes8 bytes(size);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(random.below(256));
  }
  return bytes;
}

}  // namespace sluice
