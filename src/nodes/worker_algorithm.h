#pragma once

#include <memory>
#include <span>
#include <utility>

#include "model/job.h"
#include "partition/chunk_map.h"
#include "protocol/effects.h"
#include "protocol/event.h"

namespace sluice {

// What an algorithm does in a worker. From a chunk's last gradient until it is complete, nobody
// computes with its parameters: that is when they may change, and after the worker's end.
class WorkerAlgorithm {
 public:
  virtual ~WorkerAlgorithm() = default;

  // The gradient of the chunk is final: get the parameters for this iteration.
  virtual void exchange(ChunkId chunk, Iteration iteration, Effects& effects) = 0;
  // Any event but those of the training loop.
  virtual void on_network(const Event& event, Effects& effects) = 0;
  // The worker is about to begin this iteration.
  virtual void on_next_iteration(Iteration iteration, Effects& effects) = 0;
  // The worker begins to compute, before this iteration. Until now, if it had ended, nothing was in
  // flight anywhere.
  virtual void on_started(Iteration iteration, Effects& effects) = 0;
  // The worker has the parameters of this iteration and does not begin it. Until it is started
  // again, they may change at any time, as messages that were in flight have it.
  virtual void on_ended(Iteration iteration, Effects& effects) = 0;
  // The host is lost, and the algorithm goes on without it.
  virtual void on_peer_lost(HostId host, Effects& effects) = 0;
  virtual void on_peer_joined(HostId host) = 0;
  // See Protocol.
  virtual BufferRange landing(const Message& message) const = 0;
  virtual std::span<double> weights() { return {}; }
  virtual std::span<Payload> kept() { return {}; }
  virtual std::span<const Iteration> last_sums() const { return {}; }
  virtual std::span<const Iteration> sums_given_up() const { return {}; }
};

// To whom an algorithm reports.
class Completion {
 public:
  // The chunk's parameters for this iteration are in.
  virtual void on_complete(ChunkId chunk, Iteration iteration, Effects& effects) = 0;

 protected:
  ~Completion() = default;
};

// Makes the algorithm of worker `self`. It reports to `done`, which outlives it.
using MakeAlgorithm = std::unique_ptr<WorkerAlgorithm>(const Job& job,
                                                       std::shared_ptr<const ChunkMap> chunks,
                                                       NodeId self, Completion& done);

template <class A>
std::unique_ptr<WorkerAlgorithm> make_algorithm(const Job& job,
                                                std::shared_ptr<const ChunkMap> chunks, NodeId self,
                                                Completion& done) {
  return std::make_unique<A>(job, std::move(chunks), self, done);
}

}  // namespace sluice
