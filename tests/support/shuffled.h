#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "drivers/virtual/simulator.h"
#include "model/job.h"
#include "protocol/protocol.h"
#include "state/training_state.h"
#include "support/credit_watch.h"
#include "support/loans.h"
#include "support/toy_learner.h"

namespace sluice::testing {

// A driver in which possible events happen in an order drawn from a seed: any message may overtake
// any other, confirmations come at any time, work and compute take any time. With some seeds all
// events are equally likely; with others, those with less haste wait for long.
//
// It allows everything that a real driver may do. A message goes in one of two ways:
//
//   by reference  as between threads: the receiver reads the sender's memory, at once or later;
//                 Returned may come when the last reader has let go
//   by wire       as with MPI: first the landing is named and becomes garbage; then the sender's
//                 memory is read, so that Sent and Returned may come; then it is received
//
// Memory that nobody may read is NaN: a landing between these two steps, and the gradient of a
// layer until it is reported. Throws if lent memory changes, if the parameters of a layer are NaN
// or change while the worker computes with them, or if a host exceeds a credit.
class ShuffledWorld final : public Effects {
 public:
  ShuffledWorld(const Job& job, std::vector<Protocol*> hosts, const VirtualNumbers& numbers,
                Iteration iterations, std::uint64_t seed)
      : topology_(job.topology),
        hosts_(std::move(hosts)),
        learners_(numbers.learners),
        state_(topology_, numbers.learners, *numbers.chunks, numbers.strategy, numbers.rule),
        iterations_(iterations),
        random_(seed),
        rivals_(std::size_t{1} << (2 * random_.below(3))),
        workers_(topology_.workers()),
        credits_(job.strategy, topology_) {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      workers_[w].released.assign(learners_.front()->layers().size(), -1);
      workers_[w].posted.emplace_back(Started{NodeId(w)});
      workers_[w].haste = random_.uniform();
    }
  }

  // Called after every event.
  std::function<void(const ShuffledWorld&)> watch;
  // False if nodes run alone, without the egress of a host.
  bool has_egress = true;

  // False on deadlock: nothing more can happen, but a worker is not done.
  bool run() {
    for (auto choices = all_choices(); !choices.empty(); choices = all_choices()) {
      take(choose(choices));
      loans_.verify();
      if (watch) {
        watch(*this);
      }
    }
    return std::all_of(workers_.begin(), workers_.end(),
                       [&](const WorkerState& w) { return w.iteration == iterations_; });
  }

  // Backward passes that the worker has finished.
  Iteration iteration(std::size_t rank) const { return workers_[rank].iteration; }
  double weight_in_flight(ChunkId chunk) const {
    double sum = 0;
    for (const Flight& flight : flights_) {
      sum += flight.message.chunk == chunk ? flight.message.weight : 0;
    }
    return sum;
  }

  void send(const Message& message, Payload payload) override {
    if (message.kind == MessageKind::kAllReduce) {
      return join_sum(message);
    }
    if (leaves_host(message) && has_egress) {
      credits_.on_send(message);
    }
    const bool by_wire = leaves_host(message) && random_.below(2) == 0;
    flights_.push_back({message, std::move(payload), by_wire ? Stage::kLeft : Stage::kReference,
                        random_.uniform()});
  }
  void start(Work work) override { works_.push_back({std::move(work), random_.uniform()}); }
  void release(NodeId worker, LayerId layer, Iteration iteration) override {
    Iteration& released = workers_[worker.index()].released[layer.index()];
    check(iteration == released + 1, "a layer is released once per iteration, in order");
    released = iteration;
  }
  Payload borrow(NodeId node, const BufferRange& what) override {
    return loans_.lend(state_.workspace(node).view(what));
  }
  Payload copy(NodeId node, const BufferRange& what) override {
    const auto view = state_.workspace(node).view(what);
    return Payload::owning(std::vector<float>(view.begin(), view.end()));
  }

 private:
  struct WorkerState {
    std::vector<Iteration> released;  // by layer
    Iteration iteration = 0;
    std::size_t forward = 0;       // layers done in this iteration's forward pass
    std::size_t backward = 0;      // layers whose gradients are not reported yet
    std::vector<float> seen;       // the parameters as the forward pass read them
    std::vector<float> gradients;  // of this iteration, written layer by layer
    std::deque<Event> posted;      // to its host, which handles them in order
    double haste = 0;
  };

  enum class Stage : std::uint8_t { kReference, kLeft, kPlaced, kRead };
  struct Flight {
    Message message;
    Payload payload;
    Stage stage;
    double haste;
    BufferRange place = {};
  };
  struct Notice {
    Message message;
    double haste;
  };
  struct PendingWork {
    Work work;
    double haste;
  };

  enum class Kind : std::uint8_t { kForward, kBackward, kPosted, kFlight, kSent, kReturned, kWork };
  struct Choice {
    Kind kind;
    std::size_t index;
    double haste;
  };

  // Draws `rivals_` choices and returns the one with the most haste.
  Choice choose(const std::vector<Choice>& choices) {
    Choice chosen = choices[random_.below(choices.size())];
    for (std::size_t i = 1; i < rivals_; ++i) {
      const Choice& rival = choices[random_.below(choices.size())];
      chosen = rival.haste > chosen.haste ? rival : chosen;
    }
    return chosen;
  }

  std::vector<Choice> all_choices() const {
    std::vector<Choice> choices;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const WorkerState& worker = workers_[w];
      if (worker.backward > 0) {
        choices.push_back({Kind::kBackward, w, worker.haste});
      } else if (worker.iteration < iterations_ &&
                 worker.released[worker.forward] == worker.iteration) {
        choices.push_back({Kind::kForward, w, worker.haste});
      }
      if (!worker.posted.empty()) {
        choices.push_back({Kind::kPosted, w, worker.haste});
      }
    }
    const auto add = [&](Kind kind, const auto& pending) {
      for (std::size_t i = 0; i < pending.size(); ++i) {
        choices.push_back({kind, i, pending[i].haste});
      }
    };
    add(Kind::kFlight, flights_);
    add(Kind::kSent, sent_);
    add(Kind::kReturned, *returned_);
    add(Kind::kWork, works_);
    return choices;
  }

  void take(const Choice& choice) {
    switch (choice.kind) {
      case Kind::kForward:
        return run_forward(choice.index);
      case Kind::kBackward:
        return run_backward(choice.index);
      case Kind::kPosted: {
        auto& posted = workers_[choice.index].posted;
        const Event event = std::move(posted.front());
        posted.pop_front();
        return handle(event, NodeId(choice.index));
      }
      case Kind::kFlight:
        return move_on(choice.index);
      case Kind::kSent: {
        const Message message = pick(sent_, choice.index).message;
        if (has_egress) {
          credits_.on_sent(message);
        }
        return handle(Sent{message}, message.from);
      }
      case Kind::kReturned: {
        const Message message = pick(*returned_, choice.index).message;
        return handle(Returned{message}, message.from);
      }
      case Kind::kWork:
        return finish(choice.index);
    }
  }

  template <class T>
  static T pick(std::vector<T>& from, std::size_t index) {
    T item = std::move(from[index]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(index));
    return item;
  }

  Protocol& host_of(NodeId node) const { return *hosts_[topology_.host_of(node).index()]; }
  void handle(const Event& event, NodeId node) { host_of(node).handle(event, *this); }
  bool leaves_host(const Message& message) const {
    return topology_.host_of(message.from) != topology_.host_of(message.to);
  }

  static void poison(std::span<float> memory) {
    std::fill(memory.begin(), memory.end(), std::numeric_limits<float>::quiet_NaN());
  }

  // ---- Compute ----------------------------------------------------------------------------------

  static std::span<float> part(std::span<float> values, const Range& range) {
    return values.subspan(static_cast<std::size_t>(range.begin),
                          static_cast<std::size_t>(range.size()));
  }

  void run_forward(std::size_t rank) {
    WorkerState& worker = workers_[rank];
    const Layer& layer = learners_[rank]->layers()[worker.forward];
    worker.seen.resize(learners_[rank]->parameters().size());
    const auto parameters = part(learners_[rank]->parameters(), layer.range);
    check(std::all_of(parameters.begin(), parameters.end(), [](float p) { return !std::isnan(p); }),
          "a released layer has its parameters");
    std::copy(parameters.begin(), parameters.end(), part(worker.seen, layer.range).begin());
    if (++worker.forward == worker.released.size()) {
      worker.forward = 0;
      worker.backward = worker.released.size();
      compute_gradients(rank);
    }
  }

  // From here on autograd may write to any gradient.
  void compute_gradients(std::size_t rank) {
    WorkerState& worker = workers_[rank];
    for (std::size_t l = 0; l < worker.released.size(); ++l) {
      verify_unchanged(rank, LayerId(l));
    }
    state_.slots(NodeId(rank)).use(worker.iteration);
    NoHooks hooks;
    learners_[rank]->step(worker.iteration, hooks);
    const auto buffer = gradients_of(rank, worker.iteration);
    worker.gradients.assign(buffer.begin(), buffer.end());
    poison(buffer);
  }

  void run_backward(std::size_t rank) {
    WorkerState& worker = workers_[rank];
    const LayerId layer(--worker.backward);
    verify_unchanged(rank, layer);
    const Range range = learners_[rank]->layers()[layer.index()].range;
    const auto made = part(worker.gradients, range);
    std::copy(made.begin(), made.end(), part(gradients_of(rank, worker.iteration), range).begin());
    worker.posted.emplace_back(GradientReady{NodeId(rank), layer, worker.iteration});
    if (worker.backward == 0) {
      worker.posted.emplace_back(BackwardDone{NodeId(rank), worker.iteration++});
    }
  }

  std::span<float> gradients_of(std::size_t rank, Iteration iteration) {
    const auto& slots = state_.slots(NodeId(rank)).all();
    return slots[static_cast<std::size_t>(iteration) % slots.size()];
  }

  void verify_unchanged(std::size_t rank, LayerId layer) {
    const Range range = learners_[rank]->layers()[layer.index()].range;
    check(std::ranges::equal(part(learners_[rank]->parameters(), range),
                             part(workers_[rank].seen, range)),
          "parameters stay as they are from the forward pass to the gradient");
  }

  // ---- Messages ---------------------------------------------------------------------------------

  void move_on(std::size_t index) {
    Flight& flight = flights_[index];
    const Message& message = flight.message;
    switch (flight.stage) {
      case Stage::kReference:
        return deliver_reference(pick(flights_, index));
      case Stage::kLeft:
        flight.place = host_of(message.to).landing(message);
        if (flight.place.buffer != Buffer::kNone) {
          poison(state_.workspace(message.to).view(flight.place));
        }
        flight.stage = Stage::kPlaced;
        return;
      case Stage::kPlaced:
        return read(flight);
      case Stage::kRead: {
        const Flight arrived = pick(flights_, index);
        return handle(Received{arrived.message, arrived.payload}, arrived.message.to);
      }
    }
  }

  void deliver_reference(Flight flight) {
    const Message& message = flight.message;
    const BufferRange place = host_of(message.to).landing(message);
    if (place.buffer != Buffer::kNone) {
      state_.workspace(message.to).land(place, flight.payload);
    }
    if (leaves_host(message)) {
      sent_.push_back({message, random_.uniform()});
    }
    if (message.wants_return) {
      const Notice notice{message, random_.uniform()};
      auto hold = std::make_shared<const Return>(returned_, notice, flight.payload);
      flight.payload = flight.payload.held_by(std::move(hold));
    }
    handle(Received{message, std::exchange(flight.payload, {})}, message.to);
  }

  void read(Flight& flight) {
    const Message& message = flight.message;
    if (flight.place.buffer != Buffer::kNone) {
      Workspace& workspace = state_.workspace(message.to);
      workspace.land(flight.place, flight.payload);
      flight.payload = Payload(workspace.view(flight.place), nullptr);
    } else {
      const auto bytes = flight.payload.bytes();
      flight.payload = Payload::owning(std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    flight.stage = Stage::kRead;
    sent_.push_back({message, random_.uniform()});
    if (message.wants_return) {
      returned_->push_back({message, random_.uniform()});
    }
  }

  // Reports when the last reader lets go.
  class Return {
   public:
    Return(std::shared_ptr<std::vector<Notice>> returned, const Notice& notice, Payload payload)
        : returned_(std::move(returned)), notice_(notice), payload_(std::move(payload)) {}
    Return(const Return&) = delete;
    Return& operator=(const Return&) = delete;
    ~Return() { returned_->push_back(notice_); }

   private:
    std::shared_ptr<std::vector<Notice>> returned_;
    Notice notice_;
    Payload payload_;
  };

  // Makes the driver's own sum when the last worker has joined.
  void join_sum(const Message& message) {
    auto& joined = sums_[{message.chunk, message.iteration}];
    joined.push_back(message);
    if (joined.size() < workers_.size()) {
      return;
    }
    const BufferRange where = host_of(message.to).landing(message);
    std::vector<float> sum(static_cast<std::size_t>(where.range.size()));
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const auto term = state_.workspace(NodeId(w)).view(where);
      std::transform(sum.begin(), sum.end(), term.begin(), sum.begin(), std::plus<>());
    }
    for (const Message& request : joined) {
      const auto place = state_.workspace(request.to).view(where);
      std::copy(sum.begin(), sum.end(), place.begin());
      flights_.push_back({request, Payload(place, nullptr), Stage::kRead, random_.uniform()});
    }
    sums_.erase({message.chunk, message.iteration});
  }

  void finish(std::size_t index) {
    Work work = pick(works_, index).work;
    Payload output = state_.workspace(work.node).execute(work);
    work.sources.clear();
    const NodeId node = work.node;
    handle(Finished{std::move(work), std::move(output)}, node);
  }

  Topology topology_;
  std::vector<Protocol*> hosts_;
  std::span<const std::unique_ptr<Learner>> learners_;
  TrainingState state_;
  Iteration iterations_;
  Random random_;
  std::size_t rivals_;  // 1: haste has no effect
  std::vector<WorkerState> workers_;
  CreditWatch credits_;
  Loans loans_;
  std::vector<Flight> flights_;
  std::vector<Notice> sent_;  // to be confirmed
  std::shared_ptr<std::vector<Notice>> returned_ = std::make_shared<std::vector<Notice>>();
  std::vector<PendingWork> works_;
  std::map<std::pair<ChunkId, Iteration>, std::vector<Message>> sums_;  // that workers wait for
};

}  // namespace sluice::testing
