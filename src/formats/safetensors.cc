#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "base/file.h"

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are written as they are in memory");

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kAlignment = 8;

struct TypeInfo {
  std::string_view name;
  std::size_t width;
};

TypeInfo info_of(ElementType type) {
  // In the order of the enumeration.
  static constexpr std::array<TypeInfo, 10> kTypes{{{"BOOL", 1},
                                                    {"U8", 1},
                                                    {"I8", 1},
                                                    {"I16", 2},
                                                    {"I32", 4},
                                                    {"I64", 8},
                                                    {"F16", 2},
                                                    {"BF16", 2},
                                                    {"F32", 4},
                                                    {"F64", 8}}};
  return kTypes.at(static_cast<std::size_t>(type));
}

void check_size(const StoredTensor& tensor) {
  const auto elements =
      std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies());
  check(static_cast<std::size_t>(elements) * info_of(tensor.type).width == tensor.bytes.size(),
        "a stored tensor has the bytes of its shape");
}

// The header, padded to align the data that follows.
Result<std::string> header_of(const std::vector<StoredTensor>& tensors) {
  nlohmann::ordered_json header{{kMetadata, {{"format", "pt"}}}};
  std::size_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    check_size(tensor);
    if (header.contains(tensor.name)) {
      return Error(tensor.name == kMetadata
                       ? fmt::format("a tensor must not be named {}; rename it", kMetadata)
                       : fmt::format("there are two tensors named {}; rename one", tensor.name));
    }
    const std::size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", info_of(tensor.type).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    return text;
  } catch (const nlohmann::ordered_json::type_error&) {
    return Error("the name of a tensor is not UTF-8; rename it");
  }
}

std::array<char, 8> little_endian(std::uint64_t value) {
  return std::bit_cast<std::array<char, 8>>(value);
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path,
                               std::vector<StoredTensor> tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const StoredTensor& tensor) { return info_of(tensor.type).width; });
  const auto header = header_of(tensors);
  if (!header) {
    return header.error().within(path.string());
  }
  return write_file(path, [&](std::ostream& out) {
    const auto length = little_endian(header->size());
    out.write(length.data(), length.size());
    out << *header;
    for (const StoredTensor& tensor : tensors) {
      out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
                static_cast<std::streamsize>(tensor.bytes.size()));
    }
  });
}

}  // namespace sluice
