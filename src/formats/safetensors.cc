#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "formats/document.h"

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

// In the order of the enumeration.
constexpr std::array<TypeInfo, 10> kTypes{{{"BOOL", 1},
                                           {"U8", 1},
                                           {"I8", 1},
                                           {"I16", 2},
                                           {"I32", 4},
                                           {"I64", 8},
                                           {"F16", 2},
                                           {"BF16", 2},
                                           {"F32", 4},
                                           {"F64", 8}}};

TypeInfo info_of(ElementType type) { return kTypes.at(static_cast<std::size_t>(type)); }

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

// The number of bytes of a tensor of this shape, if it is no more than `room`.
std::optional<std::size_t> shape_bytes(const Json& shape, std::size_t width, std::size_t room) {
  std::size_t bytes = width;
  bool empty = false;
  for (const Json& side : shape) {
    if (!side.is_number_unsigned()) {
      return std::nullopt;
    }
    const auto length = side.get<std::size_t>();
    empty = empty || length == 0;
    if (length > 0 && bytes > room / length) {
      return std::nullopt;
    }
    bytes *= std::max<std::size_t>(length, 1);
  }
  return empty ? 0 : bytes;
}

// One entry of the header.
Result<StoredTensor> tensor_of(const std::string& name, const Json& entry,
                               std::span<const std::byte> data) {
  const auto wrong = [&](const char* what) {
    return Error(fmt::format("tensor {} {}", name, what));
  };
  const bool has_all = entry.is_object() && entry.contains("dtype") && entry.contains("shape") &&
                       entry.contains("data_offsets");
  if (!has_all || !entry["shape"].is_array() || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2) {
    return wrong("has no type, shape and place");
  }
  const auto type = std::ranges::find_if(
      kTypes, [&](const TypeInfo& info) { return entry["dtype"] == info.name; });
  if (type == kTypes.end()) {
    return wrong("has an unknown type");
  }
  const Json& begin = entry["data_offsets"][0];
  const Json& end = entry["data_offsets"][1];
  if (!begin.is_number_unsigned() || !end.is_number_unsigned() ||
      end.get<std::size_t>() > data.size() || begin.get<std::size_t>() > end.get<std::size_t>()) {
    return wrong("does not lie in the file");
  }
  const std::size_t size = end.get<std::size_t>() - begin.get<std::size_t>();
  if (shape_bytes(entry["shape"], type->width, size) != size) {
    return wrong("has not the length of its shape");
  }
  return StoredTensor{name, static_cast<ElementType>(type - kTypes.begin()),
                      entry["shape"].get<std::vector<std::int64_t>>(),
                      data.subspan(begin.get<std::size_t>(), size)};
}

// Sorts the tensors as they lie in a file. Returns what precedes them there.
Result<std::string> head_of(std::vector<StoredTensor>& tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const StoredTensor& tensor) { return info_of(tensor.type).width; });
  const auto header = header_of(tensors);
  if (!header) {
    return header.error();
  }
  const auto length = little_endian(header->size());
  return std::string(length.begin(), length.end()) + *header;
}

}  // namespace

Result<std::string> safetensors_of(std::vector<StoredTensor> tensors) {
  auto head = head_of(tensors);
  if (!head) {
    return head.error();
  }
  std::string file = *std::move(head);
  for (const StoredTensor& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return file;
}

Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length)) {
    return Error("is too short for a safetensors file");
  }
  std::memcpy(&length, file.data(), sizeof(length));
  const std::span<const std::byte> rest = file.subspan(sizeof(length));
  if (length > rest.size()) {
    return Error("ends before its header does");
  }
  const std::string text(reinterpret_cast<const char*>(rest.data()), length);
  const auto header = parse_json(text, "the header");
  if (!header) {
    return header.error();
  }
  if (!header->is_object()) {
    return Error("the header: is no object");
  }
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header->items()) {
    if (name == kMetadata) {
      continue;
    }
    auto tensor = tensor_of(name, entry, rest.subspan(length));
    if (!tensor) {
      return tensor.error();
    }
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

Result<FileDigest> write_safetensors(const std::filesystem::path& path,
                                     std::vector<StoredTensor> tensors) {
  const auto head = head_of(tensors);
  if (!head) {
    return head.error().within(path.string());
  }
  FileDigest digest{.bytes = 0, .checksum = hash_of({})};
  const auto written = write_file(path, [&](std::ostream& out) {
    const auto write = [&](std::span<const std::byte> bytes) {
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
      digest.bytes += bytes.size();
      digest.checksum = hash_of(bytes, digest.checksum);
    };
    write(std::as_bytes(std::span(*head)));
    for (const StoredTensor& tensor : tensors) {
      write(tensor.bytes);
    }
  });
  return written ? Result<FileDigest>(digest) : written.error();
}

}  // namespace sluice
