#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "drivers/virtual/simulator.h"
#include "model/job.h"
#include "protocol/protocol.h"
#include "state/training_state.h"
#include "support/credit_watch.h"
#include "support/loans.h"
#include "support/shuffled_worker.h"
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
// Memory that nobody may read is NaN: a landing between these two steps, and gradients that are not
// reported yet. Throws if lent memory changes, if parameters change while a worker computes with
// them, or if a host exceeds a credit.
class ShuffledWorld final : public Effects {
 public:
  ShuffledWorld(const Job& job, std::vector<Protocol*> hosts, const VirtualNumbers& numbers,
                Iteration iterations, std::uint64_t seed)
      : topology_(job.topology),
        hosts_(std::move(hosts)),
        state_(topology_, numbers.learners, *numbers.chunks, numbers.strategy, numbers.rule),
        iterations_(iterations),
        random_(seed),
        rivals_(std::size_t{1} << (2 * random_.below(3))),
        credits_(job.strategy, topology_) {
    for (std::size_t w = 0; w < topology_.workers(); ++w) {
      workers_.push_back({ShuffledWorker(w, *numbers.learners[w], state_), random_.uniform()});
    }
  }

  // Called after every event.
  std::function<void(const ShuffledWorld&)> watch;
  // False if nodes run alone, without the egress of a host.
  bool has_egress = true;

  // False on deadlock: nothing more can happen, but a worker is not done.
  bool run() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      handle(workers_[w].worker.take_posted(), NodeId(w));
    }
    for (auto choices = all_choices(); !choices.empty(); choices = all_choices()) {
      take(choose(choices));
      for (HastyWorker& of : workers_) {
        of.worker.end_at(iterations_);
      }
      loans_.verify();
      if (watch) {
        watch(*this);
      }
    }
    return std::all_of(workers_.begin(), workers_.end(),
                       [&](const HastyWorker& of) { return of.worker.iteration() == iterations_; });
  }

  // The same, further, with the same protocols.
  bool run_on(Iteration iterations) {
    iterations_ = iterations;
    for (HastyWorker& of : workers_) {
      of.worker.start();
    }
    return run();
  }

  std::int64_t messages(MessageKind kind) const {
    return messages_[static_cast<std::size_t>(kind)];
  }
  // Of the worker; see ShuffledWorker.
  Iteration iteration(std::size_t rank) const { return workers_[rank].worker.iteration(); }
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
    ++messages_[static_cast<std::size_t>(message.kind)];
    if (leaves_host(message) && has_egress) {
      credits_.on_send(message);
    }
    const bool by_wire = leaves_host(message) && random_.below(2) == 0;
    flights_.push_back({message, std::move(payload), by_wire ? Stage::kLeft : Stage::kReference,
                        random_.uniform()});
  }
  void start(Work work) override { works_.push_back({std::move(work), random_.uniform()}); }
  void release(NodeId worker, LayerId layer, Iteration iteration) override {
    workers_[worker.index()].worker.release(layer, iteration);
  }
  Payload borrow(NodeId node, const BufferRange& what) override {
    return loans_.lend(state_.workspace(node).view(what));
  }
  Payload copy(NodeId node, const BufferRange& what) override {
    const auto view = state_.workspace(node).view(what);
    return Payload::owning(std::vector<float>(view.begin(), view.end()));
  }

 private:
  struct HastyWorker {
    ShuffledWorker worker;
    double haste;
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
      const auto& [worker, haste] = workers_[w];
      if (worker.is_in_backward()) {
        choices.push_back({Kind::kBackward, w, haste});
      } else if (worker.iteration() < iterations_ && worker.can_go_forward()) {
        choices.push_back({Kind::kForward, w, haste});
      }
      if (worker.has_posted()) {
        choices.push_back({Kind::kPosted, w, haste});
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
        return workers_[choice.index].worker.run_forward();
      case Kind::kBackward:
        return workers_[choice.index].worker.run_backward();
      case Kind::kPosted:
        return handle(workers_[choice.index].worker.take_posted(), NodeId(choice.index));
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
  TrainingState state_;
  Iteration iterations_;
  Random random_;
  std::size_t rivals_;  // 1: haste has no effect
  std::vector<HastyWorker> workers_;
  CreditWatch credits_;
  Loans loans_;
  std::vector<Flight> flights_;
  std::vector<Notice> sent_;  // to be confirmed
  std::shared_ptr<std::vector<Notice>> returned_ = std::make_shared<std::vector<Notice>>();
  std::vector<PendingWork> works_;
  std::array<std::int64_t, kMessageKinds> messages_{};
  std::map<std::pair<ChunkId, Iteration>, std::vector<Message>> sums_;  // that workers wait for
};

}  // namespace sluice::testing
