#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/runner.h"
#include "nodes/basic_worker.h"

namespace sluice {

// Local SGD, DiLoCo: the worker takes steps of its own. The cadence says after which of them a
// chunk is exchanged:
//
//   local step -> outer gradient -> its sum over all workers -> outer step -> take over
//
// The outer gradient is how far the local steps have led from the global parameters, of which each
// worker has a copy. All make the same outer step with the same sum, so the copies stay equal. With
// a delay the worker goes on after the outer gradient, and makes the outer step exactly so many
// local steps later; if the sum is late, it waits.
//
// Where the learner takes the local steps, a gradient that is final stands for one that is taken.
//
// A sum that is not due when a worker ends is used when it goes on.
//
// If a worker is lost, the others give up the sums that they have not got, and exchange nothing
// more: they take local steps until the phase ends. Nothing of these is lost, since the next outer
// gradient goes back to the same global parameters; what error feedback has kept back is put back.
// Some may have got a sum that others have given up; last_sums() tells who takes from whom before
// the next phase (nodes/catch_ups.h), and with sums_given_up() what is put back.
//
// With exchange gossip (NoLoCo) workers meet in pairs instead, drawn anew for each exchange. Both
// send their outer gradient and their global parameters, which are not those of the others, and
// make the outer step with what the partner has sent. It may come early, since the partner waits
// for nobody else. Who has no partner, or has lost it before its share came, steps alone.
//
// The first iterations may be synchronous: an all-reduce worker has them, and the global parameters
// are those of the replica. They need all workers.
class LocalStepsWorker final : public BasicWorker, private Completion {
 public:
  LocalStepsWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
                   Completion& done);

  BufferRange landing(const Message& message) const override;
  // With a delay, of pairs.
  std::span<Payload> kept() override {
    return in_pairs() ? std::span(partners_) : std::span<Payload>();
  }
  std::span<const Iteration> last_sums() const override { return last_sums_; }
  std::span<const Iteration> sums_given_up() const override { return given_up_; }

 private:
  struct State {
    Iteration begun = 0;    // the iteration with whose parameters the exchange began; 0: none
    Iteration waits = 0;    // the iteration that waits for the outer step; 0: none does
    std::size_t parts = 0;  // segments that are summed
    bool summed = false;    // all of them, or the partner's share is here
  };
  // What a partner has sent for the exchange of this iteration.
  struct Share {
    Iteration iteration = 0;
    Payload payload;
  };

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_peer_lost(HostId host, Effects& effects) override;
  void on_peer_joined(HostId host) override;
  // A synchronous iteration has the chunk's parameters.
  void on_complete(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_finished(const Work& work, Effects& effects);
  // The worker's own batch is the whole.
  void take_local_step(ChunkId chunk, Iteration iteration, Effects& effects) const;
  void on_norm(Iteration iteration, Effects& effects) const;
  void on_local_step(ChunkId chunk, Iteration iteration, Effects& effects);
  // With the output of the outer gradient.
  void begin_exchange(ChunkId chunk, Iteration iteration, Payload share, Effects& effects);
  void begin_sum(ChunkId chunk, Iteration iteration, Effects& effects);
  void send_share(ChunkId chunk, Iteration iteration, Payload share, Effects& effects);
  void on_share(ChunkId chunk, Effects& effects);
  // Nobody else will come to the exchange that has begun.
  void step_alone(ChunkId chunk, Effects& effects);
  void lose_partner(HostId host, Effects& effects);
  void give_up_sums(Effects& effects);
  void on_part(ChunkId chunk, Effects& effects);
  void step_if_due(ChunkId chunk, Effects& effects);
  void start(ChunkId chunk, WorkKind kind, Iteration iteration, Effects& effects) const;
  const Cadence& cadence() const { return strategy().cadence; }
  bool in_pairs() const { return strategy().exchange == Exchange::kGossip; }

  std::unique_ptr<WorkerAlgorithm> synchronous_;  // an all-reduce worker; null: no iteration is
  std::optional<CollectiveRunner> runner_;        // none if workers meet in pairs
  std::vector<std::int64_t> fragments_;           // by chunk
  std::vector<State> states_;                     // by chunk
  std::vector<std::vector<Share>> shares_;        // by chunk, of exchanges that have not begun here
  std::vector<Payload> partners_;                 // by chunk: shares for exchanges that have begun
  std::vector<Iteration> last_sums_;              // by chunk
  std::vector<Iteration> given_up_;               // by chunk: the exchange
  std::size_t members_;                           // workers whose outer gradients are summed
  bool exchanges_ = true;                         // until a worker is lost that sums need
  std::size_t final_ = 0;                         // gradients of chunks, for the next norm
};

}  // namespace sluice
