#pragma once

#include <cstdint>

#include "base/id.h"
#include "base/units.h"

namespace sluice {

enum class MessageKind : std::uint8_t {
  kPush,        // worker -> server: a gradient
  kNotify,      // server -> worker: the chunk has been updated
  kPull,        // worker -> server: send me the chunk
  kParameters,  // server -> worker: the updated chunk
  kReduce,      // worker -> worker: a hop of a collective, to be added
  kGather,      // worker -> worker: a hop of a collective, to be copied
  kAllReduce,   // worker -> the driver's own all-reduce, and back
  kElastic,     // worker -> server: my parameters, for the elastic step
  kShare,       // worker -> worker: my parameters and half of my weight
  kSwap,        // worker -> worker: my parameters, to take the mean with
  kSwapped,     // worker -> worker: what to subtract for the mean
  kGradient,    // worker -> the one that speaks for its machine: a gradient
};
inline constexpr int kMessageKinds = 12;

// When something is needed: in which iteration's forward pass, and before which layer. The least
// value is the most urgent. The iteration counts first: what one worker still lacks to begin an
// iteration must not wait behind what another, already ahead, will need in the next.
constexpr std::uint64_t urgency(Iteration iteration, std::uint32_t priority) {
  return (static_cast<std::uint64_t>(iteration) << 32U) | priority;
}

// The header of what nodes say to each other.
struct Message {
  MessageKind kind = MessageKind::kPush;
  // The receiver's driver confirms a loan: Returned comes once the payload may be overwritten.
  bool wants_return = false;
  std::uint16_t round = 0;     // of a collective
  std::uint32_t priority = 0;  // the layer that waits for it; the first is the most urgent
  NodeId from;
  NodeId to;
  ChunkId chunk;
  std::uint32_t segment = 0;  // of a chunk that a collective sums in several
  // The iteration whose forward pass waits for it: a gradient of iteration t goes into the
  // parameters of t+1 and says t+1.
  Iteration iteration = 0;
  Bytes payload_bytes = 0;
  Iteration slowest = 0;  // updates that the slowest worker has made, as the server knows
  double weight = 0;      // of shared parameters

  bool operator==(const Message&) const = default;
};

}  // namespace sluice
