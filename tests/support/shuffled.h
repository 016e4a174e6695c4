#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "drivers/virtual/numbers.h"
#include "model/job.h"
#include "protocol/protocol.h"
#include "support/toy_learner.h"

namespace sluice::testing {

// A world in which whatever can happen next happens in an order drawn from a seed: messages between
// different pairs of nodes overtake each other, work and compute take any time. Only messages of
// one pair stay in order, as every transport keeps them.
class ShuffledWorld final : public Effects {
 public:
  ShuffledWorld(const Job& job, std::vector<Protocol*> hosts, const VirtualNumbers& numbers,
                Iteration iterations, std::uint64_t seed)
      : topology_(job.topology),
        hosts_(std::move(hosts)),
        learners_(numbers.learners),
        numbers_(&numbers, topology_),
        iterations_(iterations),
        random_(seed),
        workers_(topology_.workers()) {
    for (auto& worker : workers_) {
      worker.released.assign(learners_.front()->layers().size(), -1);
    }
  }

  // Called after every event.
  std::function<void(const ShuffledWorld&)> watch;

  // False if nothing can happen any more although a worker is not done: a deadlock.
  bool run() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      handle(Started{NodeId(w)}, NodeId(w));
    }
    for (;;) {
      std::vector<std::function<void()>> possible;
      list_compute(possible);
      for (auto& [pair, queue] : queues_) {
        if (!queue.empty()) {
          possible.emplace_back([this, key = pair] { deliver(key); });
        }
      }
      for (std::size_t i = 0; i < works_.size(); ++i) {
        possible.emplace_back([this, i] { finish(i); });
      }
      if (possible.empty()) {
        break;
      }
      possible[random_.below(possible.size())]();
      if (watch) {
        watch(*this);
      }
    }
    for (const auto& worker : workers_) {
      if (worker.iteration < iterations_) {
        return false;
      }
    }
    return true;
  }

  Iteration iteration(std::size_t rank) const { return workers_[rank].iteration; }
  double weight_in_flight(ChunkId chunk) const {
    double sum = 0;
    for (const auto& [pair, queue] : queues_) {
      for (const Received& received : queue) {
        sum += received.message.chunk == chunk ? received.message.weight : 0;
      }
    }
    return sum;
  }

  void send(const Message& message, Payload payload) override {
    queues_[{message.from, message.to}].push_back({message, Numbers::snapshot(payload)});
  }
  void start(Work work) override { works_.push_back(std::move(work)); }
  void release(NodeId worker, LayerId layer, Iteration iteration) override {
    Iteration& released = workers_[worker.index()].released[layer.index()];
    check(iteration == released + 1, "a layer is released once an iteration, in order");
    released = iteration;
  }
  Payload borrow(NodeId node, const BufferRange& what) override {
    return numbers_.view(node, what);
  }
  Payload copy(NodeId node, const BufferRange& what) override {
    return Numbers::snapshot(numbers_.view(node, what));
  }

 private:
  struct WorkerState {
    std::vector<Iteration> released;
    Iteration iteration = 0;
    std::size_t backward = 0;  // layers whose gradients have not been reported yet
  };

  void handle(const Event& event, NodeId node) {
    hosts_[topology_.host_of(node).index()]->handle(event, *this);
  }

  void list_compute(std::vector<std::function<void()>>& possible) {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      WorkerState& worker = workers_[w];
      if (worker.backward > 0) {
        possible.emplace_back([this, w] { report_gradient(w); });
      } else if (worker.iteration < iterations_ &&
                 std::all_of(worker.released.begin(), worker.released.end(),
                             [&](Iteration r) { return r == worker.iteration; })) {
        possible.emplace_back([this, w] {
          numbers_.compute_gradients(NodeId(w), workers_[w].iteration);
          workers_[w].backward = workers_[w].released.size();
        });
      }
    }
  }

  void report_gradient(std::size_t rank) {
    WorkerState& worker = workers_[rank];
    const NodeId id(rank);
    const Iteration iteration = worker.iteration;
    const LayerId layer(--worker.backward);
    if (worker.backward == 0) {
      ++worker.iteration;
    }
    handle(GradientReady{id, layer, iteration}, id);
    if (worker.backward == 0) {
      handle(BackwardDone{id, iteration}, id);
    }
  }

  void deliver(const std::pair<NodeId, NodeId>& pair) {
    auto& queue = queues_[pair];
    const Received received = std::move(queue.front());
    queue.erase(queue.begin());
    const Message& message = received.message;
    handle(Sent{message}, message.from);
    if (message.wants_return) {
      handle(Returned{message}, message.from);
    }
    const auto where = hosts_[topology_.host_of(message.to).index()]->landing(message);
    numbers_.land(message.to, where, received.payload);
    handle(received, message.to);
  }

  void finish(std::size_t index) {
    Work work = std::move(works_[index]);
    works_.erase(works_.begin() + static_cast<std::ptrdiff_t>(index));
    Payload output = numbers_.execute(work);
    work.sources.clear();
    const NodeId node = work.node;
    handle(Finished{std::move(work), std::move(output)}, node);
  }

  Topology topology_;
  std::vector<Protocol*> hosts_;
  std::span<const std::unique_ptr<Learner>> learners_;
  Numbers numbers_;
  Iteration iterations_;
  Random random_;
  std::vector<WorkerState> workers_;
  std::map<std::pair<NodeId, NodeId>, std::vector<Received>> queues_;
  std::vector<Work> works_;
};

}  // namespace sluice::testing
