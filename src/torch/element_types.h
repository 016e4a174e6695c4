#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "formats/safetensors.h"

namespace sluice {

// The types of tensors that files have, and LibTorch's for them.
inline constexpr std::array<std::pair<ElementType, c10::ScalarType>, 10> kElementTypes{{
    {ElementType::kBool, c10::ScalarType::Bool},
    {ElementType::kUint8, c10::ScalarType::Byte},
    {ElementType::kInt8, c10::ScalarType::Char},
    {ElementType::kInt16, c10::ScalarType::Short},
    {ElementType::kInt32, c10::ScalarType::Int},
    {ElementType::kInt64, c10::ScalarType::Long},
    {ElementType::kFloat16, c10::ScalarType::Half},
    {ElementType::kBfloat16, c10::ScalarType::BFloat16},
    {ElementType::kFloat32, c10::ScalarType::Float},
    {ElementType::kFloat64, c10::ScalarType::Double},
}};

inline c10::ScalarType scalar_type_of(ElementType type) {
  return std::ranges::find(kElementTypes, type, [](const auto& pair) { return pair.first; })
      ->second;
}

// None if files have no such type.
inline std::optional<ElementType> stored_type_of(c10::ScalarType type) {
  const auto* found =
      std::ranges::find(kElementTypes, type, [](const auto& pair) { return pair.second; });
  return found == kElementTypes.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace sluice
