#pragma once

#include <array>
#include <cstdint>

#include "model/names.h"

namespace sluice {

enum class Exchange : std::uint8_t {
  kPullAfterNotify,  // parameter server: push, notify, pull
  kBroadcast,        // parameter server: push, then the new parameters go to all at once
  kLatePull,         // parameter server: push, and pull only when the next iteration begins
  kAllReduce,        // no server: the workers sum among themselves
  kGossip,           // no server: a worker talks to one peer at a time
};
enum class Partition : std::uint8_t { kLayer, kWhole, kKvstore, kSlice, kMerged };
enum class Order : std::uint8_t { kFifo, kPriority, kAfterBackward };

// How an all-reduce is done.
enum class Collective : std::uint8_t {
  kRing,
  kRecursiveDoubling,
  kHalvingDoubling,
  kBinaryTree,
  kDirect,
  kNative,  // the driver's own: MPI_Allreduce, or the [allreduce] table of a simulated cluster
  kSharedMemory,  // the driver's too: in memory that the processes of one machine share
};
// Those that are sequences of messages between workers.
inline constexpr std::array kPlannedCollectives{Collective::kRing, Collective::kRecursiveDoubling,
                                                Collective::kHalvingDoubling,
                                                Collective::kBinaryTree, Collective::kDirect};

// How partition merged finds its groups of layers.
enum class Merge : std::uint8_t { kOptimal, kGreedy };

// Who applies the mean gradient to the parameters, where there are servers. Workers get the sum
// back and update their own replicas.
enum class Update : std::uint8_t { kServer, kWorker };

// How the user writes each value of an axis: the one place where these words stand.
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
inline constexpr std::array kCollectiveNames{
    Names<Collective>{Collective::kRing, "ring"},
    Names<Collective>{Collective::kRecursiveDoubling, "recursive-doubling"},
    Names<Collective>{Collective::kHalvingDoubling, "halving-doubling"},
    Names<Collective>{Collective::kBinaryTree, "binary-tree"},
    Names<Collective>{Collective::kDirect, "direct"},
    Names<Collective>{Collective::kNative, "native"},
    Names<Collective>{Collective::kSharedMemory, "shared-memory"},
};
inline constexpr std::array kUpdateNames{
    Names<Update>{Update::kServer, "server"},
    Names<Update>{Update::kWorker, "worker"},
};
inline constexpr std::array kMergeNames{
    Names<Merge>{Merge::kOptimal, "optimal"},
    Names<Merge>{Merge::kGreedy, "greedy"},
};

}  // namespace sluice
