#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/runner.h"
#include "model/job.h"

namespace sluice {

// Sums gradients like a CollectiveRunner, those of large matrices by their factors (PowerSGD). Such
// a matrix is three chunks: the left factor, the right one, and the rest, whose range nobody sends.
//
//   left factor -> its sum -> right factor, which depends on it -> its sum -> their product
//
// While one matrix waits for a sum, others compute or are summed. The segments of all three chunks
// are done when the product is in place. Without codec powersgd there are no such matrices.
class FactoredRunner {
 public:
  using Done = CollectiveRunner::Done;

  FactoredRunner(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  // As of a CollectiveRunner. A matrix begins with the last of its chunks.
  std::vector<Done> begin(ChunkId chunk, Iteration iteration, Effects& effects);
  std::vector<Done> handle(const Event& event, Effects& effects);
  BufferRange landing(const Message& message) const { return runner_.landing(message); }
  std::size_t segments_of(ChunkId chunk) const { return runner_.segments_of(chunk); }
  Range range_of(ChunkId chunk, std::size_t segment) const {
    return runner_.range_of(chunk, segment);
  }

 private:
  Factor factor_of(ChunkId chunk) const { return (*chunks_)[chunk].factor; }
  // The first chunk of the matrix that this one belongs to.
  ChunkId left_of(ChunkId chunk) const;
  void start(ChunkId left, WorkKind kind, Iteration iteration, Effects& effects) const;
  void sum(ChunkId chunk, Iteration iteration, Effects& effects);
  // Of a chunk that is a factor.
  void on_part(const Done& done, Effects& effects);
  std::vector<Done> all_of(ChunkId left, Iteration iteration) const;

  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  std::uint32_t ranks_;
  CollectiveRunner runner_;
  std::vector<std::size_t> begun_;  // by left chunk: chunks of the matrix that have begun
  std::vector<std::size_t> parts_;  // by chunk: segments that are summed
};

}  // namespace sluice
