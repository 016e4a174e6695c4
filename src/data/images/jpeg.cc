#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <optional>
// Must come after the headers above.
#include <jpeglib.h>

#include "data/images/codecs.h"

namespace sluice {
namespace {

// One decompression. On failure the library leaves it with longjmp. So everything that run()
// changes is in the object, not on the stack that the jump skips.
class JpegReader {
 public:
  explicit JpegReader(std::string_view bytes) : bytes_(bytes) {}
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Result<Image> read() {
    if (run()) {
      return std::move(image_);
    }
    if (too_large_) {
      return *too_large_;
    }
    const std::size_t left = info_.src == nullptr ? 0 : info_.src->bytes_in_buffer;
    return image_error(bytes_.size() - left,
                       fmt::format("expected the rest of a JPEG, found: {}", reason_.data()));
  }

 private:
  // How callbacks of the library find the reader.
  struct Link {
    jpeg_error_mgr manager;
    JpegReader* reader;
  };

  [[noreturn]] static void give_up(j_common_ptr info) {
    JpegReader& reader = *reinterpret_cast<Link*>(info->err)->reader;
    info->err->format_message(info, reader.reason_.data());
    std::longjmp(reader.escape_, 1);
  }
  static void keep_silent(j_common_ptr /*info*/) {}
  static void ignore(j_common_ptr /*info*/, int /*level*/) {}
  static boolean end_too_early(j_decompress_ptr info) {
    JpegReader& reader = *reinterpret_cast<Link*>(info->err)->reader;
    std::snprintf(reader.reason_.data(), reader.reason_.size(), "the end of the file");
    std::longjmp(reader.escape_, 1);
  }

  bool run() {
    info_.err = jpeg_std_error(&link_.manager);
    link_.reader = this;
    link_.manager.error_exit = give_up;
    link_.manager.output_message = keep_silent;
    link_.manager.emit_message = ignore;
    if (setjmp(escape_) != 0) {
      return false;
    }
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    info_.src->fill_input_buffer = end_too_early;
    jpeg_read_header(&info_, TRUE);
    if (!make_room()) {
      return false;
    }
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      read_row();
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  // Calls nothing that jumps: a longjmp must not skip destructors.
  bool make_room() {
    auto image = blank_image(info_.image_width, info_.image_height);
    if (!image) {
      too_large_ = image.error();
      return false;
    }
    image_ = *std::move(image);
    image_.pixels.resize(image_.width * image_.height * 3);
    inks_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks_ ? JCS_CMYK : JCS_RGB;
    row_.resize(inks_ ? image_.width * 4 : 0);
    return true;
  }

  void read_row() {
    std::uint8_t* to = image_.pixels.data() + info_.output_scanline * image_.width * 3;
    JSAMPROW row = inks_ ? row_.data() : to;
    jpeg_read_scanlines(&info_, &row, 1);
    if (inks_) {
      mix_inks(to);
    }
  }

  // Adobe stores how much light is left, others how much ink there is.
  void mix_inks(std::uint8_t* to) const {
    for (std::size_t i = 0; i < row_.size(); i += 4) {
      for (std::size_t c = 0; c < 3; ++c) {
        const int colour = info_.saw_Adobe_marker != 0 ? row_[i + c] : 255 - row_[i + c];
        const int black = info_.saw_Adobe_marker != 0 ? row_[i + 3] : 255 - row_[i + 3];
        *to++ = static_cast<std::uint8_t>((colour * black + 127) / 255);
      }
    }
  }

  std::string_view bytes_;
  jpeg_decompress_struct info_{};
  Link link_{};
  std::jmp_buf escape_{};
  std::array<char, JMSG_LENGTH_MAX> reason_{};
  std::optional<Error> too_large_;
  Image image_;
  bool inks_ = false;
  std::vector<std::uint8_t> row_;  // of CMYK values
};

}  // namespace

Result<Image> decode_jpeg(std::string_view bytes) { return JpegReader(bytes).read(); }

}  // namespace sluice
