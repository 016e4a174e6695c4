#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/id.h"
#include "base/units.h"
#include "model/deep_gradient_options.h"

namespace sluice {

// The five axes. A run is a point: algorithm x exchange x partition x order x codec.
enum class Algorithm : std::uint8_t {
  kBsp,     // all workers take every step together
  kAsp,     // the server takes each gradient as it comes
  kSsp,     // as kAsp, but nobody gets further ahead than the staleness bound
  kEasgd,   // local steps, elastically tied to a centre
  kGossip,  // local steps, now and then a weighted share to a random peer (GoSGD)
  kAdPsgd,  // local steps, the mean with a random partner (AD-PSGD)
  kPipe,    // as kBsp, with the gradient of a fixed number of iterations ago (Pipe-SGD)
};
enum class Exchange : std::uint8_t {
  kPullAfterNotify,  // parameter server: push, notify, pull
  kBroadcast,        // parameter server: push, then the new parameters go to all at once
  kLatePull,         // parameter server: push, and pull only when the next iteration begins
  kAllReduce,        // no server: the workers sum among themselves
  kGossip,           // no server: a worker talks to one peer at a time
};
enum class Partition : std::uint8_t { kLayer, kWhole, kKvstore, kSlice, kMerged };
enum class Order : std::uint8_t { kFifo, kPriority, kAfterBackward };
enum class Codec : std::uint8_t {
  kNone,
  kTruncate16,  // the upper half of each float
  kQuantise8,   // a byte a value
  kDgc,         // the largest values only: Deep Gradient Compression
};

// How an all-reduce is done.
enum class Collective : std::uint8_t {
  kRing,
  kRecursiveDoubling,
  kHalvingDoubling,
  kBinaryTree,
  kNative,  // the driver's own: MPI_Allreduce, or the [allreduce] table of a simulated cluster
  kSharedMemory,  // the driver's too: in memory that the processes of one machine share
};
// Those that are sequences of messages between workers.
inline constexpr std::array kPlannedCollectives{Collective::kRing, Collective::kRecursiveDoubling,
                                                Collective::kHalvingDoubling,
                                                Collective::kBinaryTree};

// How partition merged finds its groups of layers.
enum class Merge : std::uint8_t { kOptimal, kGreedy };

// How the user writes each value of an axis: the one place where these words stand.
template <class E>
using Names = std::pair<E, std::string_view>;

inline constexpr std::array kAlgorithmNames{
    Names<Algorithm>{Algorithm::kBsp, "bsp"},       Names<Algorithm>{Algorithm::kAsp, "asp"},
    Names<Algorithm>{Algorithm::kSsp, "ssp"},       Names<Algorithm>{Algorithm::kEasgd, "easgd"},
    Names<Algorithm>{Algorithm::kGossip, "gosgd"},  Names<Algorithm>{Algorithm::kAdPsgd, "ad-psgd"},
    Names<Algorithm>{Algorithm::kPipe, "pipe-sgd"},
};
inline constexpr std::array kExchangeNames{
    Names<Exchange>{Exchange::kPullAfterNotify, "ps-pull"},
    Names<Exchange>{Exchange::kBroadcast, "ps-broadcast"},
    Names<Exchange>{Exchange::kLatePull, "ps-late-pull"},
    Names<Exchange>{Exchange::kAllReduce, "allreduce"},
    Names<Exchange>{Exchange::kGossip, "gossip"},
};
inline constexpr std::array kPartitionNames{
    Names<Partition>{Partition::kLayer, "layer"},     Names<Partition>{Partition::kWhole, "whole"},
    Names<Partition>{Partition::kKvstore, "kvstore"}, Names<Partition>{Partition::kSlice, "slice"},
    Names<Partition>{Partition::kMerged, "merged"},
};
inline constexpr std::array kOrderNames{
    Names<Order>{Order::kFifo, "fifo"},
    Names<Order>{Order::kPriority, "priority"},
    Names<Order>{Order::kAfterBackward, "after-backward"},
};
inline constexpr std::array kCodecNames{
    Names<Codec>{Codec::kNone, "none"},
    Names<Codec>{Codec::kTruncate16, "truncate16"},
    Names<Codec>{Codec::kQuantise8, "quantise8"},
    Names<Codec>{Codec::kDgc, "dgc"},
};
inline constexpr std::array kCollectiveNames{
    Names<Collective>{Collective::kRing, "ring"},
    Names<Collective>{Collective::kRecursiveDoubling, "recursive-doubling"},
    Names<Collective>{Collective::kHalvingDoubling, "halving-doubling"},
    Names<Collective>{Collective::kBinaryTree, "binary-tree"},
    Names<Collective>{Collective::kNative, "native"},
    Names<Collective>{Collective::kSharedMemory, "shared-memory"},
};
inline constexpr std::array kMergeNames{
    Names<Merge>{Merge::kOptimal, "optimal"},
    Names<Merge>{Merge::kGreedy, "greedy"},
};

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

// 56 KB go out with their announcement, before the receiver has asked for them.
inline constexpr std::int64_t kEagerParams = 14'336;

struct Strategy {
  Algorithm algorithm = Algorithm::kBsp;
  Exchange exchange = Exchange::kBroadcast;
  Partition partition = Partition::kSlice;
  Order order = Order::kPriority;
  Codec codec = Codec::kNone;

  std::int64_t slice_params = 50'000;             // partition slice: at most so many parameters
  std::int64_t kvstore_split_params = 1'000'000;  // partition kvstore: split from this size on
  Merge merge = Merge::kOptimal;                  // partition merged: how to group the layers
  Bytes credit = 600'000;  // order priority: handed to the network and not yet confirmed, per host
  Bytes peer_credit = 200'000;     // likewise to one other host, in any order
  bool local_aggregation = false;  // the workers of a machine sum their gradients first
  bool staggered = true;  // each worker begins a layer with another chunk; false: as P3 does
  std::uint64_t seed = 1;

  bool error_feedback = false;  // truncate16, quantise8: what the code loses goes into the next
  DeepGradientOptions dgc;

  // What a hop of an all-reduce carries at most; longer chunks are summed in segments.
  std::int64_t segment_params = kEagerParams;
  std::optional<Collective> collective;  // none: the cheapest for each chunk
  Iteration staleness = 3;               // ssp: how far a worker may be ahead of the slowest
  Iteration period = 4;                  // easgd: iterations between two talks with the centre
  double elasticity = 0;                 // easgd: pull towards the centre; 0: 0.9 / workers
  double gossip_probability = 0.25;      // gosgd: of talking after an iteration
  Iteration pipeline_depth = 2;          // pipe-sgd: the update of t uses the gradient of t - depth
  Iteration pipeline_warmup = 0;         // pipe-sgd: iterations with depth 1 at the start

  bool coded() const { return codec != Codec::kNone; }
  bool sparse() const { return codec == Codec::kDgc; }
  // Every sum is one operation of the driver.
  bool driver_sums() const {
    return collective == Collective::kNative || collective == Collective::kSharedMemory;
  }
  bool uses_servers() const {
    return exchange != Exchange::kAllReduce && exchange != Exchange::kGossip;
  }
  // Gradients of so many iterations may be in use at a time.
  std::size_t gradient_slots() const {
    switch (algorithm) {
      case Algorithm::kPipe:
        return static_cast<std::size_t>(pipeline_depth);
      case Algorithm::kSsp:
        return staleness > 0 ? 2 : 1;
      default:
        return 1;
    }
  }
  // Which of them holds the gradient that goes into the parameters of this iteration.
  std::size_t gradient_slot(Iteration iteration) const {
    return static_cast<std::size_t>(iteration - 1) % gradient_slots();
  }
};

}  // namespace sluice
