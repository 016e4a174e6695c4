#pragma once

#include <functional>
#include <string>

namespace sluice {

// Hears of what deserves attention but is no failure.
using Warn = std::function<void(const std::string&)>;

}  // namespace sluice
