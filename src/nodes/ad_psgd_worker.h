#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "nodes/basic_worker.h"

namespace sluice {

// AD-PSGD: even ranks are active, odd ones passive. After each of its steps an active worker sends
// its parameters y to a random passive one, goes on to compute, and before it ends its next step
// hears of the mean m of y and what the passive worker had. It then moves by m - y, on top of what
// it has learned meanwhile. The passive worker answers as soon as it is asked, and takes m over.
// So both gain together what they lose together, and the mean over all workers stays.
//
//   active:   step t -> move by the answer to t - 1 -> send y of t -> compute t + 1
//   passive:  asked -> m = mean of y and the last m, or of y and its parameters -> answer m
//             step t -> on top of the last m, if there is one -> compute t + 1
//
// An active worker waits only for an answer, and a passive one answers whatever its own worker
// does, so nothing can lock up. If its partner is lost, an active worker goes on as if it had not
// asked.
//
// After its last step an active worker moves by its last answer as soon as that is in, and a
// passive one takes each m over at once: nobody computes with their parameters. So when nothing is
// in flight any more, each swap has had its effect on both sides.
class ActiveWorker final : public BasicWorker {
 public:
  ActiveWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
               Completion& done);

 private:
  struct State {
    Iteration stepped = 0;  // the iteration that waits for this chunk, once its step is made
    NodeId partner;         // of the last swap
    std::optional<Payload> sent;
    std::optional<Payload> mean;
  };

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_ended(Iteration iteration, Effects& effects) override;
  void on_peer_lost(HostId host, Effects& effects) override;
  void on_answer(const Received& answer, Effects& effects);
  void go_on_if_ready(ChunkId chunk, Effects& effects);
  void move_by_answer(ChunkId chunk, Iteration iteration, Effects& effects);
  void send_swap(ChunkId chunk, Iteration iteration, Effects& effects);

  std::vector<State> states_;  // by chunk
};

class PassiveWorker final : public BasicWorker {
 public:
  PassiveWorker(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self,
                Completion& done);

 private:
  struct State {
    bool working = false;         // on one thing at a time, so that each sees the one before
    Iteration next = 0;           // the iteration that waits for this chunk; 0 if none does
    std::optional<Payload> mean;  // of the swaps since the last step
    std::deque<Received> asked;
  };

  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
  void on_ended(Iteration iteration, Effects& effects) override;
  void on_peer_lost(HostId host, Effects& effects) override;
  void on_finished(const Finished& finished, Effects& effects);
  void work_if_free(ChunkId chunk, Effects& effects);
  void start_swap(ChunkId chunk, Effects& effects);
  void take_over(ChunkId chunk, Iteration iteration, Effects& effects);

  std::vector<State> states_;  // by chunk
};

}  // namespace sluice
