#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace sluice {

// A peer has sent something invalid: it runs another version, has a bug, or the message was
// corrupted in transit.
class BadMessage : public std::runtime_error {
 public:
  BadMessage(std::size_t rank, const std::string& why)
      : std::runtime_error(fmt::format("a message of rank {} is not right: {}", rank, why)) {}
};

}  // namespace sluice
