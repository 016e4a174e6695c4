#pragma once

#include <span>
#include <vector>

#include "collectives/factored_runner.h"
#include "nodes/basic_worker.h"

namespace sluice {

// Training without servers: the workers sum each chunk among themselves, and every one applies the
// same update to its own replica. With a pipeline of depth K (Pipe-SGD) the parameters of iteration
// t contain the gradients up to t-K, so that K-1 sums may be in flight while the worker computes;
// K = 1 is plain synchronous training. An update is made only between two uses of the chunk,
// segment by segment: the update of one hides behind the sums of the others. Where an update needs
// the sum of its chunk, the chunk counts as one segment; where it needs the norm of all gradients,
// the updates wait for the last sum.
class AllReduceWorker final : public BasicWorker {
 public:
  AllReduceWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
                  Completion& done);

  BufferRange landing(const Message& message) const override;
  // Sums of a pipeline.
  std::span<Payload> kept() override { return sums_; }

 private:
  struct Segment {
    Iteration applied = 0;  // gradients in the parameters
    Iteration summed = 0;   // gradients whose sums are there, from the first on without a gap
    std::vector<Iteration> summed_early = {};
    bool updating = false;
  };
  struct State {
    Iteration next = 0;      // the iteration that waits for this chunk; 0 if none does
    Iteration needed = 0;    // gradients that it needs in the parameters
    std::size_t behind = 0;  // segments that have fewer
    std::vector<Segment> segments;
  };

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_summed(ChunkId chunk, std::size_t segment, Iteration iteration, Effects& effects);
  void on_done(const CollectiveRunner::Done& done, Effects& effects);
  void on_updated(ChunkId chunk, std::size_t segment, Iteration iteration, Effects& effects);
  void on_norm(Iteration iteration, Effects& effects);
  Payload& sum_of(ChunkId chunk, Iteration iteration);
  void update_if_ready(ChunkId chunk, std::size_t segment, Effects& effects);
  void complete_if_ready(ChunkId chunk, Effects& effects);
  Iteration depth_at(Iteration iteration) const;
  // Gradients in the parameters of an iteration.
  Iteration applied_at(Iteration iteration) const;
  // Whether each segment of a chunk is updated by itself.
  bool by_segment() const {
    return !strategy().driver_sums() && strategy().sums_first == SumsFirst::kSegment;
  }

  FactoredRunner runner_;
  std::vector<State> states_;        // by chunk
  std::vector<std::size_t> partly_;  // by chunk: sums of its parts, if it counts as one segment
  std::size_t chunks_summed_ = 0;    // for the next norm
  Iteration normed_ = 0;             // updates up to this iteration have their norm
  std::vector<Payload> sums_;        // that are sparse, by chunk and slot
};

}  // namespace sluice
