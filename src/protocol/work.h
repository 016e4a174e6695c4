#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "base/range.h"
#include "model/strategy.h"
#include "protocol/payload.h"

namespace sluice {

// The flat buffers of a node; all are indexed like the model's parameters.
enum class Buffer : std::uint8_t {
  kNone,
  kParameters,
  kGradients,
};

// A worker that computes while earlier gradients are still in use has several gradient buffers:
// iteration t uses slot t modulo their number.
struct BufferRange {
  Buffer buffer = Buffer::kNone;
  Range range;
  std::size_t slot = 0;
};

enum class WorkKind : std::uint8_t {
  // parameters[range] <- rule(parameters, mean of the sources in their order). If the sum is
  // `begun`, gradients[range] comes before them. Sparse sources change only the parameters they
  // have entries for; the output is then a sparse vector of the new values.
  kUpdate,
  // parameters[range] <- the sum of the sources in their order, after gradients[range] if it is
  // `begun`: for a server whose workers update. If the sources are packed, the output is the packed
  // sum.
  kSum,
  // gradients[range] <- the sum of gradients[range] and the sources, in the order of the sources;
  // the gradients come after the first `before` of them, or do not count if the sum is `fresh`.
  kReduce,
  kBlend,  // parameters[range] <- keep * parameters + add * the one source
  // With x the parameters and y the one source, x <- x + pull * (y - x); the output is
  kElastic,  //   y - pull * (y - x), the other end of the spring
  kSwap,     // the output is the mean of both sources
  kSwapped,  // parameters[range] <- parameters + the first source - the second
  kEncode,   // the output is gradients[range], packed by the codec
  kDecode,   // gradients[range] <- the one source, which is packed
  // The output is the sum of the sources, which are sparse; if they are codes of a gathered codec,
  // one after the other. Then kDecode takes several such codes and unpacks their sum.
  kMerge,
  kPatch,    // parameters[range] <- the entries of the one source, which is sparse
  kChanges,  // the output is a patch: what changed since the last one for `origin`
  kNorm,     // notes the norm of gradients[range], the whole mean, for the updates that follow
  // gradients[range] <- global parameters - parameters. If it has an output, that is the result and
  // then the global parameters.
  kOuterGradient,
  // global parameters[range] <- outer rule(global parameters, mean of gradients[range]); if they
  // are `fresh`, the worker's own parameters. With exchange gossip the one source is such an output
  // of the partner; there is none if the worker has no partner.
  kOuterStep,
  // parameters[range] <- keep * parameters + (1 - keep) * global parameters
  kTakeOver,
  // Of a matrix, which is the range: of gradients[range] and what its factors have lost so far, the
  // left factor is found and stands at the beginning of the range.
  kLeftFactor,
  // The sum of the left factors is there: the right factor is found and stands behind it.
  kRightFactor,
  // The sum of those is there, too: gradients[range] <- the product of both sums. What the factors
  // of this worker, one of so many `workers`, have lost is kept.
  kFromFactors,
};

// Arithmetic on ranges. A node asks for it and gets a Finished event; the real-time driver
// computes, the simulator charges time.
struct Work {
  WorkKind kind = WorkKind::kUpdate;
  std::uint16_t round = 0;  // of a collective
  std::uint32_t priority = 0;
  std::uint32_t contributors = 1;  // update: workers whose gradients are in the sum
  std::uint32_t workers = 1;       // update: workers of the joined batch, the divisor of the mean
  std::uint32_t before = 0;        // reduce: sources that are added before the gradients
  bool fresh = false;              // reduce: of the sources alone; outer step: as kOuterStep has it
  bool begun = false;              // update, sum: gradients[range] has the sum of earlier ones
  bool coded = false;              // the sources are packed by the codec
  bool exact = false;              // encode: gradients[range] become the values as they unpack
  bool feedback = false;           // encode, sum: keep what packing loses for the next iteration
  NodeId node;
  NodeId origin;  // on whose behalf; by default the node itself
  ChunkId chunk;
  std::uint32_t segment = 0;
  Iteration iteration = 0;  // whose forward pass waits for it
  Range range;
  std::size_t slot = 0;  // of the gradients
  float keep = 1;
  float add = 1;
  float pull = 0;
  Bytes output_bytes =
      0;  // estimated size of the output, for runs without numbers; left factor: of both
  std::vector<Payload> sources;
};

// Whether whoever does this work waits for a device. It takes no place among a host's works, and
// must not hold up its messages. Such works are cheapest together: one thread does all that are
// there.
inline bool waits_for_device(const Strategy& strategy, const Work& work) {
  return strategy.learners_factor() && work.kind == WorkKind::kRightFactor;
}

}  // namespace sluice
