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

// A worker that goes on while gradients are in use has several buffers of them: the gradient of
// iteration t is in slot t modulo their number.
struct BufferRange {
  Buffer buffer = Buffer::kNone;
  Range range;
  std::size_t slot = 0;
};

enum class WorkKind : std::uint8_t {
  // parameters[range] <- rule(parameters, mean of the sources in their order). Sparse sources
  // change nothing but their entries; the output is then a sparse vector of the new values.
  kUpdate,
  kReduce,  // gradients[range] += the one source
  kBlend,   // parameters[range] <- keep * parameters + add * the one source
  // With x the parameters and y the one source, x <- x + pull * (y - x); the output is
  kElastic,  //   y - pull * (y - x), the other end of the spring
  kSwap,     //   pull * (y - x), to be subtracted from wherever y has got to by then
  kEncode,   // the output is gradients[range] as the codec writes it
  kDecode,   // gradients[range] <- the one source, which is coded
  kMerge,    // the output is the sum of the sources, which are sparse
  kPatch,    // parameters[range] <- the values of the one source, which is sparse, at its places
  kChanges,  // the output is a patch: what has changed since `origin` last had one
};

// Arithmetic on named ranges. A node asks for it and hears Finished; the real driver computes, the
// simulator charges time.
struct Work {
  WorkKind kind = WorkKind::kUpdate;
  std::uint16_t round = 0;  // of a collective
  std::uint32_t priority = 0;
  std::uint32_t contributors = 1;  // update: workers whose gradients the sources sum up to
  std::uint32_t workers = 1;       // update: those of the joined batch, over which the mean is
  bool coded = false;              // the sources are as the codec writes them
  bool exact = false;              // encode: gradients[range] become what the code says
  bool feedback = false;           // encode: keep what the code loses for the next iteration
  NodeId node;
  NodeId origin;  // on whose behalf; the node itself if nobody else's
  ChunkId chunk;
  std::uint32_t segment = 0;
  Iteration iteration = 0;  // whose forward pass waits for it
  Range range;
  std::size_t slot = 0;  // of the gradients
  float keep = 1;
  float add = 1;
  float pull = 0;
  Bytes output_bytes = 0;  // about what the output takes, for runs without numbers
  std::vector<Payload> sources;
};

}  // namespace sluice
