#pragma once

#include <vector>

#include "nodes/basic_worker.h"

namespace sluice {

// Workers without servers: each takes its own steps, and between two iterations, when nobody
// computes with a chunk's parameters, mixes in what peers have sent meanwhile. Nobody ever waits
// for a peer, so nothing can lock up.
//
//   local step -> mix in what has come -> speak to a peer, or not -> next iteration
class GossipWorker : public BasicWorker {
 public:
  GossipWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
               Completion& done);

 protected:
  // How to take in what a peer has sent; exactly one Finished follows.
  virtual void mix_in(const Received& received, Iteration iteration, Effects& effects) = 0;
  // Some mixing is done.
  virtual void on_mixed(const Finished& finished, Effects& effects) = 0;
  // Everything that had come is mixed in.
  virtual void speak(ChunkId chunk, Iteration iteration, Effects& effects) = 0;

  // A peer at random, the same for all chunks of an iteration.
  NodeId random_peer(Iteration iteration, std::size_t first, std::size_t step) const;
  double random_number(Iteration iteration) const;
  const std::vector<Received>& inbox(ChunkId chunk) const { return inbox_[chunk.index()]; }

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) final;
  void on_network(const Event& event, Effects& effects) final;
  void mix_or_go_on(ChunkId chunk, Iteration iteration, Effects& effects);

  std::vector<std::vector<Received>> inbox_;  // by chunk, in the order of arrival
};

// GoSGD: with some probability, give half of the own weight and a copy of the parameters to a
// random peer, which takes the weighted mean. The weights of all workers and messages always sum
// to 1.
class GoSgdWorker final : public GossipWorker {
 public:
  GoSgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
              Completion& done);

  // With what has been received and not mixed in yet.
  double weight(ChunkId chunk) const;

 private:
  void mix_in(const Received& received, Iteration iteration, Effects& effects) override;
  void on_mixed(const Finished& finished, Effects& effects) override;
  void speak(ChunkId chunk, Iteration iteration, Effects& effects) override;

  std::vector<double> weights_;  // by chunk
};

// AD-PSGD: even ranks are active, odd ones passive. An active worker sends its parameters to a
// random passive one, which moves to the mean of both and answers with how far it moved; the active
// one moves as far the other way, whatever it has learned in between. So the mean over all workers
// stays.
class AdPsgdWorker final : public GossipWorker {
 public:
  AdPsgdWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
               Completion& done);

 private:
  void mix_in(const Received& received, Iteration iteration, Effects& effects) override;
  void on_mixed(const Finished& finished, Effects& effects) override;
  void speak(ChunkId chunk, Iteration iteration, Effects& effects) override;

  bool active_;
  std::vector<bool> waiting_;  // by chunk: an answer is on its way
};

}  // namespace sluice
