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

// A tensor to write. Only a view: the bytes belong to the caller.
struct StoredTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;   // empty: a scalar
  std::span<const std::byte> bytes;  // of all elements, in row-major order
};

// Writes tensors as a safetensors file, completely or not at all: the length of the header in eight
// bytes, the header in JSON, and the elements, all little-endian. Wider elements come first, so
// that every tensor is aligned. Names must be unique and UTF-8; the format reserves __metadata__.
Result<void> write_safetensors(const std::filesystem::path& path,
                               std::vector<StoredTensor> tensors);

}  // namespace sluice
