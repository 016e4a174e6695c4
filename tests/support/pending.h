#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "protocol/work.h"
#include "support/flights.h"
#include "support/outages.h"

namespace sluice::testing {

// Something that can happen next in a ShuffledWorld.
struct Choice {
  enum class Kind : std::uint8_t {
    kForward,
    kBackward,
    kPosted,
    kFlight,
    kSent,
    kReturned,
    kWork,
    kLost,
  };

  Kind kind;
  std::size_t index;
  double haste;
};

struct PendingWork {
  Work work;
  double haste;
};

// All that is under way in a ShuffledWorld, numbered list by list.
struct Pending {
  Flights flights;
  std::vector<Confirmation> sent;  // to be confirmed
  std::shared_ptr<std::vector<Confirmation>> returned =
      std::make_shared<std::vector<Confirmation>>();
  std::vector<PendingWork> works;
  std::vector<Outages::Notice> notices;  // of lost hosts, to be heard

  // Readers may let go of what a host has sent after it was lost; its next life must not hear of
  // it.
  template <class Predicate>
  void forget_returns(const Predicate& is_its) const {
    std::erase_if(*returned, [&](const Confirmation& of) { return is_its(of.message); });
  }
  std::size_t size() const {
    return flights.all().size() + sent.size() + returned->size() + works.size() + notices.size();
  }
  Choice operator[](std::size_t number) const {
    Choice found{};
    const auto is_in = [&](Choice::Kind kind, const auto& list) {
      if (number >= list.size()) {
        number -= list.size();
        return false;
      }
      found = {kind, number, list[number].haste};
      return true;
    };
    check(is_in(Choice::Kind::kFlight, flights.all()) || is_in(Choice::Kind::kSent, sent) ||
              is_in(Choice::Kind::kReturned, *returned) || is_in(Choice::Kind::kWork, works) ||
              is_in(Choice::Kind::kLost, notices),
          "there are so many");
    return found;
  }
};

// Takes one out of a list, whose order does not matter.
template <class T>
T pick(std::vector<T>& from, std::size_t index) {
  T item = std::move(from[index]);
  if (index + 1 < from.size()) {
    from[index] = std::move(from.back());
  }
  from.pop_back();
  return item;
}

}  // namespace sluice::testing
