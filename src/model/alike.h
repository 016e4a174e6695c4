#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "formats/document.h"

namespace sluice {

// The first setting that a process has otherwise than rank 0, in words that follow its name; empty
// if there is none.
inline std::string difference(const Json& settings, const Json& first) {
  for (const auto& [key, value] : first.items()) {
    if (const Json own = settings.value(key, Json()); own != value) {
      return fmt::format("has {} = {}, but rank 0 has {}; start all with the same settings", key,
                         own.dump(), value.dump());
    }
  }
  return "";
}

}  // namespace sluice
