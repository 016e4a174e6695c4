#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

enum class ElementType : std::uint8_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
};

// A tensor in a file. Only a view: the bytes belong to the caller.
struct StoredTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;   // empty: a scalar
  std::span<const std::byte> bytes;  // of all elements, in row-major order
};

// The same with bytes of its own.
struct TensorCopy {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  StoredTensor view() const { return {name, type, shape, bytes}; }
};

// By which a file is known again.
struct FileDigest {
  std::uint64_t bytes = 0;     // its length
  std::uint64_t checksum = 0;  // hash_of() all of them

  bool operator==(const FileDigest&) const = default;
};

// Writes tensors as a safetensors file, completely or not at all: the length of the header in eight
// bytes, the header in JSON, and the elements, all little-endian. Wider elements come first, so
// that every tensor is aligned. Names must be unique and UTF-8; the format reserves __metadata__.
Result<FileDigest> write_safetensors(const std::filesystem::path& path,
                                     std::vector<StoredTensor> tensors);

// The bytes of such a file.
Result<std::string> safetensors_of(std::vector<StoredTensor> tensors);

// The tensors in the bytes of a safetensors file, as views of them. The bytes may come from anyone.
Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file);

}  // namespace sluice
