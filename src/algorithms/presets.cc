#include "algorithms/presets.h"

#include <array>

namespace sluice {
namespace {

constexpr Strategy point(Exchange exchange, Partition partition, Order order) {
  Strategy strategy;
  strategy.exchange = exchange;
  strategy.partition = partition;
  strategy.order = order;
  return strategy;
}

constexpr std::array kPresets{
    Preset{
        "kvstore", point(Exchange::kPullAfterNotify, Partition::kKvstore, Order::kFifo),
        "MXNet's KVStore: push, notify, pull; layer by layer, large layers split over the servers",
        "P3"},
    Preset{"slicing", point(Exchange::kBroadcast, Partition::kSlice, Order::kFifo),
           "P3 without priority: slices, sent back to all as soon as they are updated", "P3"},
    Preset{"p3", point(Exchange::kBroadcast, Partition::kSlice, Order::kPriority),
           "slices, the first layer's first: on the way out, in the server, and on the way back",
           "P3"},
    Preset{"p3-allreduce", point(Exchange::kAllReduce, Partition::kSlice, Order::kPriority),
           "P3's slices and priority over a ring all-reduce, without servers", "P3"},
    Preset{"wfbp", point(Exchange::kAllReduce, Partition::kLayer, Order::kFifo),
           "wait-free backpropagation: each layer is all-reduced as soon as its gradient is final",
           "MG-WFBP"},
};

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

Result<void> validate(const Strategy& strategy) {
  if (strategy.exchange == Exchange::kAllReduce && strategy.partition == Partition::kKvstore) {
    return Error(
        "partition kvstore splits layers over parameter servers, and exchange allreduce has none; "
        "take partition layer or slice, or exchange ps-pull or ps-broadcast");
  }
  return {};
}

}  // namespace sluice
