#include "data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/file.h"

namespace sluice {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40U;

// The file is "\x93NUMPY", two bytes of version, the length of the header, the header, a
// dictionary of Python such as {'descr': '<f4', 'fortran_order': False, 'shape': (60, 3), }, and
// the elements.
struct NpyHeader {
  std::string type;
  bool column_major = false;
  std::vector<std::int64_t> shape;
  std::size_t end = 0;
};

// What stands between the two; none if they are not there.
std::optional<std::string_view> text_between(std::string_view text, std::string_view begin,
                                             std::string_view end) {
  const std::size_t found = text.find(begin);
  if (found == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(found + begin.size());
  const std::size_t length = text.find(end);
  return length == std::string_view::npos ? std::nullopt : std::optional(text.substr(0, length));
}

// "60, 3" or "60,".
std::optional<std::vector<std::int64_t>> shape_in(std::string_view text) {
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  while (!text.empty()) {
    std::int64_t side = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), side);
    if (fault != std::errc() || side < 1 || side > kMaxElements / elements) {
      return std::nullopt;
    }
    elements *= side;
    shape.push_back(side);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
  }
  return shape;
}

std::optional<NpyHeader> header_of(const std::string& bytes) {
  constexpr std::size_t kVersion = 6;
  constexpr std::size_t kLength = 8;
  const bool is_long = bytes.size() > kLength && bytes[kVersion] > 1;
  const std::size_t begin = kLength + (is_long ? 4 : 2);
  if (!bytes.starts_with(kMagic) || bytes.size() < begin) {
    return std::nullopt;
  }
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > kLength;) {
    length = length * 256 + static_cast<unsigned char>(bytes[i]);
  }
  if (length > bytes.size() - begin) {
    return std::nullopt;
  }
  const std::string_view text = std::string_view(bytes).substr(begin, length);
  const auto type = text_between(text, "'descr': '", "'");
  const auto order = text_between(text, "'fortran_order': ", ",");
  const auto shape = text_between(text, "'shape': (", ")");
  if (!type || !order || !shape) {
    return std::nullopt;
  }
  auto sides = shape_in(*shape);
  if (!sides) {
    return std::nullopt;
  }
  return NpyHeader{std::string(*type), *order != "False", *std::move(sides), begin + length};
}

template <class Stored, class Kept>
Result<NpyArray> values_of(const NpyHeader& header, std::string_view bytes) {
  std::size_t elements = 1;
  for (const std::int64_t side : header.shape) {
    elements *= static_cast<std::size_t>(side);
  }
  if (bytes.size() != elements * sizeof(Stored)) {
    return Error(
        fmt::format("its header promises {} bytes of elements, and it has {}; save it again",
                    elements * sizeof(Stored), bytes.size()));
  }
  std::vector<Kept> values(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    Stored value{};
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<Kept>(value);
  }
  return NpyArray{header.shape, std::move(values)};
}

Result<NpyArray> array_of(const std::string& bytes) {
  static_assert(std::endian::native == std::endian::little, "the elements are little-endian");
  const auto header = header_of(bytes);
  if (!header) {
    return Error("is not an array of NumPy; write it with numpy.save(FILE, array)");
  }
  if (header->column_major) {
    return Error("is in column-major order; save numpy.ascontiguousarray(array)");
  }
  const std::string_view elements = std::string_view(bytes).substr(header->end);
  if (header->type == "<f4") {
    return values_of<float, float>(*header, elements);
  }
  if (header->type == "<f8") {
    return values_of<double, float>(*header, elements);
  }
  if (header->type == "<i4") {
    return values_of<std::int32_t, std::int64_t>(*header, elements);
  }
  if (header->type == "<i8") {
    return values_of<std::int64_t, std::int64_t>(*header, elements);
  }
  return Error(
      fmt::format("has elements of type \"{}\", expected float32, float64, int32 or int64; save "
                  "array.astype(numpy.float32), or numpy.int64 for labels and words",
                  header->type));
}

}  // namespace

Result<NpyArray> read_npy(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) {
    return bytes.error();
  }
  auto array = array_of(*bytes);
  return array ? array : Result<NpyArray>(array.error().within(path));
}

}  // namespace sluice
