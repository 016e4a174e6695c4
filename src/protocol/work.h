#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "base/range.h"
#include "protocol/payload.h"

namespace sluice {

// The flat buffers a node has; all are indexed like the model's parameters.
enum class Buffer : std::uint8_t {
  kNone,
  kParameters,
  kGradients,
};

struct BufferRange {
  Buffer buffer = Buffer::kNone;
  Range range;
};

enum class WorkKind : std::uint8_t {
  kUpdate,  // parameters[range] <- rule(parameters, mean of the sources in their order)
  kReduce,  // gradients[range] += the one source
};

// Arithmetic on named ranges. A node asks for it and hears Finished; the real driver computes, the
// simulator charges time.
struct Work {
  WorkKind kind = WorkKind::kUpdate;
  std::uint16_t round = 0;  // of a collective
  std::uint32_t priority = 0;
  std::uint32_t contributors = 1;  // workers whose gradients the sources sum up to
  NodeId node;
  ChunkId chunk;
  Iteration iteration = 0;  // whose forward pass waits for it
  Range range;
  std::vector<Payload> sources;
};

}  // namespace sluice
