#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string>

namespace sluice {

// Gets messages that deserve attention but are not failures.
using Warn = std::function<void(const std::string&)>;

// Prints why the process of this rank fails; returns its exit code.
using Fail = std::function<int(std::size_t rank, const std::exception& why)>;

}  // namespace sluice
