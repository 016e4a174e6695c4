#include "nodes/presets.h"

#include <array>

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

// Analysis, III-A: where a machine has several workers, their gradients leave it as one.
constexpr Strategy aggregated(Strategy strategy) {
  strategy.local_aggregation = true;
  return strategy;
}

// Pipe-SGD, 3.2: a plain ring over the gradient vector, not cut any further, so that a code has one
// range for all that a hop carries.
constexpr Strategy whole_vectors(Algorithm algorithm, Codec codec = Codec::kNone) {
  const Order order = algorithm == Algorithm::kPipe ? Order::kFifo : Order::kAfterBackward;
  Strategy strategy = point(algorithm, Exchange::kAllReduce, Partition::kWhole, order, codec);
  strategy.collective = Collective::kRing;
  strategy.segment_params = 0;
  return strategy;
}

// Slices with priority: what the next forward pass needs first is exchanged first.
constexpr Strategy local_steps(const Cadence& cadence) {
  Strategy strategy =
      point(Algorithm::kLocal, Exchange::kAllReduce, Partition::kSlice, Order::kPriority);
  strategy.cadence = cadence;
  return strategy;
}

// DiLoCo's outer optimiser.
constexpr Cadence nesterov(Iteration every) {
  return {.every = every, .outer = Outer::kNesterov, .rate = 0.7, .momentum = 0.9};
}

// SparseLoCo: few values, in few bits; what they leave out decays, and so is the outer momentum.
constexpr Strategy gathered(Strategy strategy) {
  strategy.codec = Codec::kTopK;
  strategy.error_feedback = true;
  strategy.feedback_decay = 0.95;
  return strategy;
}

// PowerSGD, with P3's order: the two sums of a layer have others between them.
constexpr Strategy factored(Strategy strategy) {
  strategy.codec = Codec::kPowerSgd;
  strategy.error_feedback = true;
  return strategy;
}

// NoLoCo: pairs instead of a sum.
constexpr Strategy in_pairs(Strategy strategy) {
  strategy.exchange = Exchange::kGossip;
  return strategy;
}

constexpr Cadence streaming(Cadence cadence) {
  cadence.fragments = 6;
  cadence.delay = 5;
  cadence.mix = 0.5;
  return cadence;
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
           "a server on a node of its own, all gradients at once after backward", "Pipe-SGD", 0.05,
           1},
    Preset{"d-sync", whole_vectors(Algorithm::kBsp), "decentralised: one all-reduce after backward",
           "Pipe-SGD"},
    Preset{"d-sync+t", whole_vectors(Algorithm::kBsp, Codec::kTruncate16),
           "d-sync, and every hop carries the upper half of each float", "Pipe-SGD"},
    Preset{"d-sync+q", whole_vectors(Algorithm::kBsp, Codec::kQuantise8),
           "d-sync, and every hop carries a byte a value", "Pipe-SGD"},
    Preset{"pipe-sgd", whole_vectors(Algorithm::kPipe),
           "the all-reduce of one iteration runs behind the compute of the next", "Pipe-SGD", 0.02},
    Preset{"pipe-sgd+t", whole_vectors(Algorithm::kPipe, Codec::kTruncate16),
           "pipe-sgd, and every hop carries the upper half of each float", "Pipe-SGD", 0.02},
    Preset{"pipe-sgd+q", whole_vectors(Algorithm::kPipe, Codec::kQuantise8),
           "pipe-sgd, and every hop carries a byte a value", "Pipe-SGD", 0.02},
    Preset{
        "bsp",
        aggregated(point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo)),
        "servers wait for all workers", "Analysis"},
    Preset{"asp", point(Algorithm::kAsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo),
           "servers take every gradient as it comes", "Analysis"},
    Preset{"ssp", point(Algorithm::kSsp, Exchange::kLatePull, Partition::kLayer, Order::kFifo),
           "as asp, but nobody gets further ahead of the slowest than a bound", "Analysis"},
    Preset{"easgd",
           point(Algorithm::kEasgd, Exchange::kBroadcast, Partition::kLayer, Order::kAfterBackward),
           "local steps, elastically tied to a centre on the servers", "Analysis"},
    Preset{"ar-sgd", point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kLayer, Order::kFifo),
           "all-reduce of the gradients, then the same update everywhere", "Analysis"},
    Preset{"gosgd",
           point(Algorithm::kGossip, Exchange::kGossip, Partition::kLayer, Order::kAfterBackward),
           "local steps, now and then a weighted share to a random peer", "Analysis"},
    Preset{"ad-psgd",
           point(Algorithm::kAdPsgd, Exchange::kGossip, Partition::kLayer, Order::kAfterBackward),
           "local steps, and the mean with a random partner", "Analysis", 0.02},
    Preset{"bsp+dgc",
           aggregated(point(Algorithm::kBsp, Exchange::kBroadcast, Partition::kLayer, Order::kFifo,
                            Codec::kDgc)),
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
    Preset{
        "powersgd",
        factored(point(Algorithm::kBsp, Exchange::kAllReduce, Partition::kLayer, Order::kPriority)),
        "each large matrix is summed as two factors of rank 4, the first layer's first",
        "PowerSGD"},
    Preset{"local-sgd", local_steps({.every = 8}),
           "local steps, and every 8 of them the mean of all workers", "Local SGD"},
    Preset{"post-local-sgd", local_steps({.every = 8, .synchronous = 500}),
           "p3-allreduce for the first 500 iterations, then local-sgd", "Local SGD"},
    Preset{"diloco", local_steps(nesterov(30)),
           "30 local steps with AdamW, then an outer step of all with Nesterov's momentum",
           "DiLoCo", 0.05, 0, Optimizer::kAdamW},
    Preset{"streaming-diloco", local_steps(streaming(nesterov(30))),
           "diloco in six fragments in turn, each exchanged behind the next five local steps",
           "DiLoCo", 0.05, 0, Optimizer::kAdamW},
    Preset{"sparseloco", gathered(local_steps({.every = 30})),
           "30 local steps with AdamW, then the largest 64 of 4096 values in 2 bits each; what is "
           "left decays in place of an outer momentum",
           "SparseLoCo", 0.05, 0, Optimizer::kAdamW},
    Preset{"noloco",
           in_pairs(
               local_steps({.every = 50, .outer = Outer::kNesterov, .rate = 0.7, .momentum = 0.5})),
           "50 local steps with AdamW, then an outer step with one random partner, without a sum "
           "over all",
           "NoLoCo", 0.05, 0, Optimizer::kAdamW},
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

}  // namespace sluice
