#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "protocol/payload.h"

namespace sluice::testing {

// Memory that nodes have lent. It must not change while anybody holds the payload.
class Loans {
 public:
  Payload lend(std::span<const float> values) {
    const auto bytes = std::as_bytes(values);
    auto loan = std::make_shared<const Loan>(Loan{bytes, {bytes.begin(), bytes.end()}});
    live_.push_back(loan);
    return {values, std::move(loan)};
  }

  // Throws if lent memory has changed.
  void verify() {
    std::erase_if(live_, [](const auto& weak) {
      const auto loan = weak.lock();
      check(!loan ||
                std::memcmp(loan->memory.data(), loan->content.data(), loan->content.size()) == 0,
            "memory that a node has lent stays as it is until nobody reads it");
      return !loan;
    });
  }

 private:
  struct Loan {
    std::span<const std::byte> memory;
    std::vector<std::byte> content;
  };

  std::vector<std::weak_ptr<const Loan>> live_;
};

}  // namespace sluice::testing
