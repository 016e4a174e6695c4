#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "protocol/payload.h"

namespace sluice::testing {

// Memory that nodes have lent. It must not change while anybody holds the payload.
class Loans {
 public:
  Payload lend(std::span<const float> values) {
    return {values, std::make_shared<const Loan>(live_, std::as_bytes(values))};
  }

  // Throws if lent memory has changed.
  void verify() const {
    for (const Loan* loan : *live_) {
      check(loan->is_unchanged(),
            "memory that a node has lent stays as it is until nobody reads it");
    }
  }

 private:
  class Loan;
  using Live = std::vector<const Loan*>;

  // Is listed as long as anybody holds it.
  class Loan {
   public:
    Loan(std::shared_ptr<Live> live, std::span<const std::byte> memory)
        : live_(std::move(live)),
          place_(live_->size()),
          memory_(memory),
          content_(memory.begin(), memory.end()) {
      live_->push_back(this);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      const Loan* const last = live_->back();
      (*live_)[place_] = last;
      last->place_ = place_;
      live_->pop_back();
    }

    bool is_unchanged() const {
      return std::memcmp(memory_.data(), content_.data(), content_.size()) == 0;
    }

   private:
    std::shared_ptr<Live> live_;
    mutable std::size_t place_;  // in the list
    std::span<const std::byte> memory_;
    std::vector<std::byte> content_;
  };

  std::shared_ptr<Live> live_ = std::make_shared<Live>();
};

}  // namespace sluice::testing
