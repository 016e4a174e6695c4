#pragma once

#include <functional>
#include <string>

namespace sluice {

// Gets messages that deserve attention but are not failures.
using Warn = std::function<void(const std::string&)>;

}  // namespace sluice
