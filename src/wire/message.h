#pragma once

#include <cstdint>

#include "base/id.h"
#include "base/units.h"

namespace sluice {

enum class MessageKind : std::uint8_t {
  kPush,        // worker -> server: a gradient
  kNotify,      // server -> worker: the chunk is updated
  kPull,        // worker -> server: a request for the chunk
  kParameters,  // server -> worker: the updated chunk
  kReduce,      // worker -> worker: a hop of a collective, to be added
  kGather,      // worker -> worker: a hop of a collective, to be copied
  kAllReduce,   // worker -> the driver's all-reduce, and back
  kElastic,     // worker -> server: its parameters, for the elastic step
  // worker -> worker: its parameters and half of its weight; with local steps, its outer gradient
  // and global parameters
  kShare,
  kSwap,      // worker -> worker: its parameters, to average with
  kSwapped,   // worker -> worker: the average
  kGradient,  // worker -> leader of its aggregation group: a gradient
};
inline constexpr int kMessageKinds = 12;

// When something is needed: in which iteration's forward pass, and before which layer. The smallest
// value is the most urgent. The iteration counts first: what one worker still lacks to begin an
// iteration must not wait behind what a faster worker will need in the next.
constexpr std::uint64_t urgency(Iteration iteration, std::uint32_t priority) {
  return (static_cast<std::uint64_t>(iteration) << 32U) | priority;
}

// The header of a message between nodes.
struct Message {
  MessageKind kind = MessageKind::kPush;
  // Asks for a Returned event once the payload may be overwritten; the receiver's driver confirms.
  bool wants_return = false;
  std::uint16_t round = 0;     // of a collective
  std::uint32_t priority = 0;  // the layer that waits for it; the lowest is the most urgent
  NodeId from;
  NodeId to;
  ChunkId chunk;
  std::uint32_t segment = 0;  // of the chunk, if a collective sums it in segments
  // The iteration whose forward pass waits for it: a gradient of iteration t goes into the
  // parameters of t+1, so its message has t+1.
  Iteration iteration = 0;
  Bytes payload_bytes = 0;
  Iteration slowest = 0;  // updates made by the slowest worker, as far as the server knows
  double weight = 0;      // of shared parameters

  bool operator==(const Message&) const = default;
};

}  // namespace sluice
