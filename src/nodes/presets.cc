#include "nodes/presets.h"

#include <array>
#include <initializer_list>
#include <string>

namespace sluice {
namespace {

constexpr Strategy point(Algorithm algorithm, Exchange exchange, Partition partition, Order order,
                         Codec codec = Codec::kNone) {
  Strategy strategy;
  strategy.codec = codec;
  strategy.algorithm = algorithm;
  strategy.exchange = exchange;
  strategy.partition = partition;
  strategy.order = order;
  return strategy;
}

// The one table of presets.
constexpr std::array kPresets{
    Preset{
        "kvstore",
        point(Algorithm::kBsp, Exchange::kPullAfterNotify, Partition::kKvstore, Order::kFifo),
        "MXNet's KVStore: push, notify, pull; layer by layer, large layers split over the servers",
        "P3"},
    Preset{"tensorflow",
           point(Algorithm::kBsp, Exchange::kLatePull, Partition::kLayer, Order::kFifo),
           "TensorFlow 1.x: parameters are pulled only when the next iteration begins", "P3"},
    Preset{"slicing", point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kSlice, Order::kFifo),
           "P3 without priority: slices, sent back to all as soon as they are updated", "P3"},
    Preset{"p3", point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kSlice, Order::kPriority),
           "slices, the first layer's first: on the way out, in the server, and on the way back",
           "P3"},
    Preset{"p3-allreduce",
           point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kSlice, Order::kPriority),
           "P3's slices and priority over an all-reduce, without servers", "P3"},
    Preset{"wfbp", point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kLayer, Order::kFifo),
           "wait-free backpropagation: each layer is all-reduced as soon as its gradient is final",
           "MG-WFBP"},
    Preset{"single",
           point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kWhole, Order::kAfterBackward),
           "all gradients in one message after backward", "MG-WFBP"},
    Preset{"mg-wfbp",
           point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kMerged, Order::kFifo),
           "wait-free backpropagation with layers merged where a start-up costs more than waiting",
           "MG-WFBP"},
    Preset{"ps-sync",
           point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kWhole, Order::kAfterBackward),
           "servers, all gradients at once after backward", "Pipe-SGD"},
    Preset{"d-sync",
           point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kWhole, Order::kAfterBackward),
           "decentralised: one all-reduce after backward", "Pipe-SGD"},
    Preset{"pipe-sgd",
           point(Algorithm::kPipe, Exchange::kAllReduce, Partition::kWhole, Order::kFifo),
           "the all-reduce of one iteration runs behind the compute of the next", "Pipe-SGD", 0.02},
    Preset{"pipe-sgd+t",
           point(Algorithm::kPipe, Exchange::kAllReduce, Partition::kWhole, Order::kFifo,
                 Codec::kTruncate16),
           "pipe-sgd, and every hop carries the upper half of each float", "Pipe-SGD", 0.02},
    Preset{"pipe-sgd+q",
           point(Algorithm::kPipe, Exchange::kAllReduce, Partition::kWhole, Order::kFifo,
                 Codec::kQuantise8),
           "pipe-sgd, and every hop carries a byte a value", "Pipe-SGD", 0.02},
    Preset{"bsp", point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo),
           "servers wait for all workers", "Analysis"},
    Preset{"asp", point(Algorithm::kAsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo),
           "servers take every gradient as it comes", "Analysis"},
    Preset{"ssp", point(Algorithm::kSsp, Exchange::kLatePull, Partition::kLayer, Order::kFifo),
           "as asp, but nobody gets further ahead of the slowest than a bound", "Analysis"},
    Preset{"easgd", point(Algorithm::kEasgd, Exchange::kBroadcast, Partition::kLayer, Order::kFifo),
           "local steps, elastically tied to a centre on the servers", "Analysis"},
    Preset{"ar-sgd", point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kLayer, Order::kFifo),
           "all-reduce of the gradients, then the same update everywhere", "Analysis"},
    Preset{"gosgd", point(Algorithm::kGossip, Exchange::kGossip, Partition::kLayer, Order::kFifo),
           "local steps, now and then a weighted share to a random peer", "Analysis"},
    Preset{"ad-psgd", point(Algorithm::kAdPsgd, Exchange::kGossip, Partition::kLayer, Order::kFifo),
           "local steps, and the mean with a random partner", "Analysis", 0.02},
    Preset{
        "bsp+dgc",
        point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo, Codec::kDgc),
        "bsp with the largest 0.1 % of each gradient, both ways", "Analysis"},
    Preset{
        "asp+dgc",
        point(Algorithm::kAsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo, Codec::kDgc),
        "asp with the largest 0.1 % of each gradient, both ways", "Analysis"},
    Preset{
        "ssp+dgc",
        point(Algorithm::kSsp, Exchange::kLatePull, Partition::kLayer, Order::kFifo, Codec::kDgc),
        "ssp with the largest 0.1 % of each gradient, both ways", "Analysis"},
    Preset{
        "ar-sgd+dgc",
        point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kLayer, Order::kFifo, Codec::kDgc),
        "ar-sgd with the sparse sum of the largest 0.1 % of each gradient", "Analysis"},
};

Result<void> validate_merged(const Strategy& strategy) {
  if (strategy.exchange != Exchange::kAllReduce) {
    return Error("partition merged does not go with exchange " +
                 std::string(name_of(kExchangeNames, strategy.exchange)) +
                 ": it weighs the start-up of an all-reduce against waiting for more layers; take "
                 "exchange allreduce, or partition layer or slice");
  }
  if (strategy.algorithm != Algorithm::kBsp) {
    return Error("partition merged does not go with algorithm " +
                 std::string(name_of(kAlgorithmNames, strategy.algorithm)) +
                 ": its plan is for sums that the next iteration waits for; take algorithm bsp, or "
                 "partition whole");
  }
  return {};
}

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) {
      return &preset;
    }
  }
  return nullptr;
}

namespace {

Result<void> validate_exchange(const Strategy& strategy) {
  const auto needs = [&](std::initializer_list<Exchange> allowed, const char* reason) {
    for (const Exchange exchange : allowed) {
      if (strategy.exchange == exchange) {
        return Result<void>{};
      }
    }
    return Result<void>(
        Error("algorithm " + std::string(name_of(kAlgorithmNames, strategy.algorithm)) +
              " does not go with exchange " +
              std::string(name_of(kExchangeNames, strategy.exchange)) + ": " + reason));
  };
  if (!strategy.uses_servers() && strategy.partition == Partition::kKvstore) {
    return Error("partition kvstore splits layers over parameter servers, and exchange " +
                 std::string(name_of(kExchangeNames, strategy.exchange)) +
                 " has none; take partition layer or slice, or exchange ps-pull or ps-broadcast");
  }
  if (strategy.partition == Partition::kMerged) {
    if (const auto mergeable = validate_merged(strategy); !mergeable) {
      return mergeable;
    }
  }
  switch (strategy.algorithm) {
    case Algorithm::kBsp:
      return needs({Exchange::kBroadcast, Exchange::kPullAfterNotify, Exchange::kLatePull,
                    Exchange::kAllReduce},
                   "all workers step together, and gossip reaches only one peer; take an exchange "
                   "over servers, or allreduce");
    case Algorithm::kAsp:
    case Algorithm::kEasgd:
      return needs({Exchange::kBroadcast},
                   "the server answers each worker by itself; take exchange ps-broadcast");
    case Algorithm::kSsp:
      return needs({Exchange::kLatePull},
                   "the worker asks for parameters when it needs them; take exchange ps-late-pull");
    case Algorithm::kGossip:
    case Algorithm::kAdPsgd:
      return needs({Exchange::kGossip}, "it knows neither servers nor sums; take exchange gossip");
    case Algorithm::kPipe:
      return needs({Exchange::kAllReduce}, "it overlaps an all-reduce; take exchange allreduce");
  }
  return {};
}

Result<void> validate_codec(const Strategy& strategy) {
  const std::string codec(name_of(kCodecNames, strategy.codec));
  const bool sends_parameters = strategy.algorithm == Algorithm::kEasgd ||
                                strategy.algorithm == Algorithm::kGossip ||
                                strategy.algorithm == Algorithm::kAdPsgd;
  if (strategy.coded() && sends_parameters) {
    return Error("codec " + codec + " packs gradients, and algorithm " +
                 std::string(name_of(kAlgorithmNames, strategy.algorithm)) +
                 " sends parameters, which bear no such loss; take codec none");
  }
  const bool in_parts = strategy.collective && !strategy.driver_sums() &&
                        *strategy.collective != Collective::kRecursiveDoubling;
  if (strategy.sparse() && in_parts) {
    return Error("collective " + std::string(name_of(kCollectiveNames, *strategy.collective)) +
                 " sums a gradient in parts, and codec dgc's sparse sum travels whole; take "
                 "collective auto or recursive-doubling");
  }
  if (strategy.error_feedback && (!strategy.coded() || strategy.sparse())) {
    return Error("error feedback keeps what codec truncate16 or quantise8 loses, and codec " +
                 codec +
                 (strategy.sparse() ? " keeps what it does not send by itself" : " loses nothing") +
                 "; leave it off, or take another codec");
  }
  return {};
}

}  // namespace

Result<void> validate(const Strategy& strategy) {
  const bool together =
      strategy.algorithm == Algorithm::kBsp || strategy.algorithm == Algorithm::kPipe;
  if (strategy.local_aggregation && !together) {
    return Error(
        "local aggregation makes the workers of a machine step together, and those of "
        "algorithm " +
        std::string(name_of(kAlgorithmNames, strategy.algorithm)) +
        " do not; leave it off, or take algorithm bsp or pipe-sgd");
  }
  if (auto valid = validate_exchange(strategy); !valid) {
    return valid;
  }
  return validate_codec(strategy);
}

}  // namespace sluice
