#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "protocol/payload.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice::testing {

// A message of a ShuffledWorld on its way; see there.
struct Flight {
  enum class Stage : std::uint8_t { kReference, kLeft, kPlaced, kRead };

  Message message;
  Payload payload;
  Stage stage;
  double haste;
  BufferRange place = {};
};

// All of them, and the weights that they carry.
class Flights {
 public:
  void add(Flight flight) { flights_.push_back(std::move(flight)); }
  const std::vector<Flight>& all() const { return flights_; }
  std::vector<Flight>& all() { return flights_; }

  // The message will never arrive.
  void lose(const Message& message) { weights_lost_[message.chunk] += message.weight; }
  template <class Predicate>
  void lose_if(const Predicate& is_lost) {
    std::erase_if(flights_, [&](const Flight& flight) {
      const bool lost = is_lost(flight.message);
      if (lost) {
        lose(flight.message);
      }
      return lost;
    });
  }

  double weight_in_flight(ChunkId chunk) const {
    double sum = 0;
    for (const Flight& flight : flights_) {
      sum += flight.message.chunk == chunk ? flight.message.weight : 0;
    }
    return sum;
  }
  double weight_lost(ChunkId chunk) const {
    const auto of = weights_lost_.find(chunk);
    return of == weights_lost_.end() ? 0 : of->second;
  }

 private:
  std::vector<Flight> flights_;
  std::map<ChunkId, double> weights_lost_;
};

// That something can be confirmed to the sender of a message.
struct Confirmation {
  Message message;
  double haste;
};

// Holds a payload, and confirms its return when the last reader lets go.
class Return {
 public:
  Return(std::shared_ptr<std::vector<Confirmation>> returned, const Confirmation& confirmation,
         Payload payload)
      : returned_(std::move(returned)), confirmation_(confirmation), payload_(std::move(payload)) {}
  Return(const Return&) = delete;
  Return& operator=(const Return&) = delete;
  ~Return() { returned_->push_back(confirmation_); }

 private:
  std::shared_ptr<std::vector<Confirmation>> returned_;
  Confirmation confirmation_;
  Payload payload_;
};

}  // namespace sluice::testing
