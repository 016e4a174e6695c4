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
};
inline constexpr int kMessageKinds = 7;

// The header of what nodes say to each other. Lower priority values are more urgent.
struct Message {
  MessageKind kind = MessageKind::kPush;
  // The receiver's driver confirms a loan: Returned comes once the payload may be overwritten.
  bool wants_return = false;
  std::uint16_t round = 0;  // of a collective
  std::uint32_t priority = 0;
  NodeId from;
  NodeId to;
  ChunkId chunk;
  Iteration iteration = 0;
  Bytes payload_bytes = 0;

  bool operator==(const Message&) const = default;
};

}  // namespace sluice
