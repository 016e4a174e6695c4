#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"

namespace sluice {

// The five axes. A run is a point: algorithm x exchange x partition x order x codec.
enum class Algorithm : std::uint8_t { kBsp };
enum class Exchange : std::uint8_t {
  kPullAfterNotify,  // parameter server: push, notify, pull
  kBroadcast,        // parameter server: push, then the new parameters go to all at once
  kAllReduce,        // no server: the workers sum among themselves
};
enum class Partition : std::uint8_t { kLayer, kWhole, kKvstore, kSlice };
enum class Order : std::uint8_t { kFifo, kPriority };
enum class Codec : std::uint8_t { kNone };

// How the user writes each value of an axis: the one place where these words stand.
template <class E>
using Names = std::pair<E, std::string_view>;

inline constexpr std::array kAlgorithmNames{Names<Algorithm>{Algorithm::kBsp, "bsp"}};
inline constexpr std::array kExchangeNames{
    Names<Exchange>{Exchange::kPullAfterNotify, "ps-pull"},
    Names<Exchange>{Exchange::kBroadcast, "ps-broadcast"},
    Names<Exchange>{Exchange::kAllReduce, "allreduce"},
};
inline constexpr std::array kPartitionNames{
    Names<Partition>{Partition::kLayer, "layer"},
    Names<Partition>{Partition::kWhole, "whole"},
    Names<Partition>{Partition::kKvstore, "kvstore"},
    Names<Partition>{Partition::kSlice, "slice"},
};
inline constexpr std::array kOrderNames{
    Names<Order>{Order::kFifo, "fifo"},
    Names<Order>{Order::kPriority, "priority"},
};
inline constexpr std::array kCodecNames{Names<Codec>{Codec::kNone, "none"}};

template <class E, std::size_t N>
constexpr std::string_view name_of(const std::array<Names<E>, N>& names, E value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) {
      return name;
    }
  }
  return "?";
}

template <class E, std::size_t N>
constexpr std::optional<E> value_of(const std::array<Names<E>, N>& names, std::string_view name) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) {
      return value;
    }
  }
  return std::nullopt;
}

struct Strategy {
  Algorithm algorithm = Algorithm::kBsp;
  Exchange exchange = Exchange::kBroadcast;
  Partition partition = Partition::kSlice;
  Order order = Order::kPriority;
  Codec codec = Codec::kNone;

  std::int64_t slice_params = 50'000;             // partition slice: at most so many parameters
  std::int64_t kvstore_split_params = 1'000'000;  // partition kvstore: split from this size on
  Bytes credit = 400'000;  // handed to the network and not yet confirmed, per host
  bool staggered = true;   // each worker begins a layer with another chunk; false: as P3 does
  std::uint64_t seed = 1;

  bool uses_servers() const { return exchange != Exchange::kAllReduce; }
};

}  // namespace sluice
