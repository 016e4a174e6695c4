#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "drivers/virtual/simulator.h"
#include "model/job.h"
#include "protocol/protocol.h"
#include "state/training_state.h"
#include "support/choices.h"
#include "support/copied_workers.h"
#include "support/credit_watch.h"
#include "support/flights.h"
#include "support/loans.h"
#include "support/outages.h"
#include "support/pending.h"
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
//
// A host can be lost: then it does nothing more, messages to it disappear, some of its own arrive
// until the receiver hears of the loss, and each of the others hears of it at any time. A host can
// stop, or a link, or the control messages to a host can wait, until nothing else can happen.
class ShuffledWorld final : public Effects {
 public:
  ShuffledWorld(const Job& job, std::vector<Protocol*> hosts, const VirtualNumbers& numbers,
                Iteration iterations, std::uint64_t seed)
      : topology_(job.topology),
        chunks_(*numbers.chunks),
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
  ShuffledWorld(const ShuffledWorld&) = delete;
  ShuffledWorld& operator=(const ShuffledWorld&) = delete;

  // Called after every event.
  std::function<void(const ShuffledWorld&)> watch = [](const ShuffledWorld&) {};
  // Called before every event.
  std::function<void(ShuffledWorld&)> disturb = [](ShuffledWorld&) {};
  // Called with all arithmetic before it is done.
  std::function<void(const Work&)> on_work = [](const Work&) {};
  // False if nodes run alone, without the egress of a host.
  bool has_egress = true;

  // False on deadlock: nothing more can happen, but a worker is not done. One whose host is lost,
  // or has ended because of a loss, has no more to do.
  bool run() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (!outages_.is_dead(host_of(NodeId(w)))) {
        handle(workers_[w].worker.take_posted(), NodeId(w));
      }
    }
    for (std::int64_t events = 0; find_choices(); ++events) {
      check(events < 10'000'000, "what few iterations need comes to an end");
      take(choices_.draw(rivals_, random_));
      std::ranges::for_each(workers_, [&](HastyWorker& of) { of.worker.end_at(iterations_); });
      if (std::exchange(has_written_, false)) {
        loans_.verify();
      }
      watch(*this);
    }
    loans_.verify();
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (iteration(w) != iterations_ && !outages_.is_out(topology_.host_of(NodeId(w)))) {
        return false;
      }
    }
    return true;
  }

  // The same, further, with the same protocols.
  bool run_on(Iteration iterations) {
    run_until(iterations);
    return run();
  }
  // For the next run().
  void run_until(Iteration iterations) {
    iterations_ = iterations;
    std::ranges::for_each(workers_, [](HastyWorker& of) { of.worker.start(); });
  }

  // Between two runs: the hosts have other protocols from now on. Theirs are gone.
  void replace(std::vector<Protocol*> hosts) {
    hosts_ = std::move(hosts);
    pending_.forget_returns([](const Message& /*of*/) { return true; });
  }
  TrainingState& state() { return state_; }

  // The host is gone, and the others will hear of it.
  void kill(HostId host) {
    outages_.kill(host);
    std::erase_if(pending_.works,
                  [&](const PendingWork& of) { return host_of(of.work.node) == host; });
    pending_.flights.lose_if([&](const Message& message) {
      return host_of(message.to) == host ||
             (host_of(message.from) == host && random_.below(2) == 0);
    });
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (HostId(h) != host) {
        pending_.notices.push_back({HostId(h), host, random_.uniform()});
      }
    }
  }
  // Between two runs: the host is there again, with this protocol and what the donor has, and all
  // others hear of it. Its old protocol is gone.
  void revive(HostId host, Protocol& again, HostId donor) {
    outages_.revive(host);
    credits_.on_revived(host);
    pending_.forget_returns([&](const Message& of) { return host_of(of.from) == host; });
    hosts_[host.index()] = &again;
    copy_workers(state_, {topology_, chunks_}, donor, host);
    for (std::size_t n = 0; n < topology_.workers_per_host(); ++n) {
      workers_[topology_.nodes_on(host)[n].index()].worker.begin_anew(iterations_);
    }
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (HostId(h) != host) {
        hosts_[h]->handle(PeerJoined{host, iterations_}, *this);
      }
    }
  }
  void stop(HostId host) { outages_.stop(host); }
  void cut(HostId one, HostId other) { outages_.cut(one, other); }
  void delay(HostId host) { outages_.delay(host); }
  const Outages& outages() const { return outages_; }

  std::int64_t messages(MessageKind kind) const {
    return messages_[static_cast<std::size_t>(kind)];
  }
  Iteration iteration(std::size_t rank) const { return workers_[rank].worker.iteration(); }
  const Flights& flights() const { return pending_.flights; }

  void send(const Message& message, Payload payload) override {
    if (message.kind == MessageKind::kAllReduce) {
      return join_sum(message);
    }
    ++messages_[static_cast<std::size_t>(message.kind)];
    if (leaves_host(message) && has_egress) {
      credits_.on_send(message);
    }
    if (outages_.is_dead(host_of(message.to))) {
      return pending_.flights.lose(message);
    }
    const bool by_wire = leaves_host(message) && random_.below(2) == 0;
    pending_.flights.add({message, std::move(payload),
                          by_wire ? Flight::Stage::kLeft : Flight::Stage::kReference,
                          random_.uniform()});
  }
  void start(Work work) override { pending_.works.push_back({std::move(work), random_.uniform()}); }
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

  using Kind = Choice::Kind;

  // False if nothing can happen any more.
  bool find_choices() {
    disturb(*this);
    list_choices();
    if (choices_.empty() && outages_.end()) {
      list_choices();
    }
    return !choices_.empty();
  }

  void list_choices() {
    choices_.clear();
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (!outages_.is_moving(host_of(NodeId(w)))) {
        continue;
      }
      const auto& [worker, haste] = workers_[w];
      if (worker.is_in_backward()) {
        choices_.add({Kind::kBackward, w, haste});
      } else if (worker.iteration() < iterations_ && worker.can_go_forward()) {
        choices_.add({Kind::kForward, w, haste});
      }
      if (worker.has_posted()) {
        choices_.add({Kind::kPosted, w, haste});
      }
    }
    choices_.add_pending();
  }

  void take(const Choice& choice) {
    switch (choice.kind) {
      case Kind::kForward:
        has_written_ = true;
        return workers_[choice.index].worker.run_forward();
      case Kind::kBackward:
        has_written_ = true;
        return workers_[choice.index].worker.run_backward();
      case Kind::kPosted:
        return handle(workers_[choice.index].worker.take_posted(), NodeId(choice.index));
      case Kind::kFlight:
        return move_on(choice.index);
      case Kind::kSent: {
        const Message message = pick(pending_.sent, choice.index).message;
        if (has_egress) {
          credits_.on_sent(message);
        }
        return handle(Sent{message}, message.from);
      }
      case Kind::kReturned: {
        const Message message = pick(*pending_.returned, choice.index).message;
        return handle(Returned{message}, message.from);
      }
      case Kind::kWork:
        return finish(choice.index);
      case Kind::kLost:
        return tell(pick(pending_.notices, choice.index));
    }
  }

  // From now on neither has to do with the other.
  void tell(const Outages::Notice& notice) {
    const HostId host = notice.host;
    const HostId lost = notice.lost;
    const auto is_between = [&](const Message& message) {
      const std::pair ends(host_of(message.from), host_of(message.to));
      return ends == std::pair(host, lost) || ends == std::pair(lost, host);
    };
    pending_.flights.lose_if(is_between);
    for (auto* const notices : {&pending_.sent, pending_.returned.get()}) {
      std::erase_if(*notices, [&](const Confirmation& of) { return is_between(of.message); });
    }
    credits_.on_lost(host, lost);
    std::optional<LostPeer> error;
    try {
      hosts_[host.index()]->handle(PeerLost{lost}, *this);
    } catch (const LostPeer& e) {
      error = e;
    }
    outages_.tell(host, lost, std::move(error));
  }

  HostId host_of(NodeId node) const { return topology_.host_of(node); }
  Protocol& protocol_of(NodeId node) const { return *hosts_[host_of(node).index()]; }
  void handle(const Event& event, NodeId node) { protocol_of(node).handle(event, *this); }
  bool leaves_host(const Message& message) const {
    return host_of(message.from) != host_of(message.to);
  }

  // The memory of the node, which this event changes.
  Workspace& written(NodeId node) {
    has_written_ = true;
    return state_.workspace(node);
  }

  // ---- Messages ---------------------------------------------------------------------------------

  void move_on(std::size_t index) {
    Flight& flight = pending_.flights.all()[index];
    const Message& message = flight.message;
    switch (flight.stage) {
      case Flight::Stage::kReference:
        return deliver_reference(pick(pending_.flights.all(), index));
      case Flight::Stage::kLeft:
        flight.place = protocol_of(message.to).landing(message);
        if (flight.place.buffer != Buffer::kNone) {
          poison(written(message.to).view(flight.place));
        }
        flight.stage = Flight::Stage::kPlaced;
        return;
      case Flight::Stage::kPlaced:
        return read(flight);
      case Flight::Stage::kRead: {
        const Flight arrived = pick(pending_.flights.all(), index);
        return handle(Received{arrived.message, arrived.payload}, arrived.message.to);
      }
    }
  }

  void deliver_reference(Flight flight) {
    const Message& message = flight.message;
    const BufferRange place = protocol_of(message.to).landing(message);
    if (place.buffer != Buffer::kNone) {
      written(message.to).land(place, flight.payload);
    }
    if (leaves_host(message)) {
      pending_.sent.push_back({message, random_.uniform()});
    }
    if (message.wants_return) {
      const Confirmation confirmation{message, random_.uniform()};
      auto hold = std::make_shared<const Return>(pending_.returned, confirmation, flight.payload);
      flight.payload = flight.payload.held_by(std::move(hold));
    }
    handle(Received{message, std::exchange(flight.payload, {})}, message.to);
  }

  void read(Flight& flight) {
    const Message& message = flight.message;
    if (flight.place.buffer != Buffer::kNone) {
      Workspace& workspace = written(message.to);
      workspace.land(flight.place, flight.payload);
      flight.payload = Payload(workspace.view(flight.place), nullptr);
    } else {
      const auto bytes = flight.payload.bytes();
      flight.payload = Payload::owning(std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    flight.stage = Flight::Stage::kRead;
    pending_.sent.push_back({message, random_.uniform()});
    if (message.wants_return) {
      pending_.returned->push_back({message, random_.uniform()});
    }
  }

  // Makes the driver's own sum when the last worker has joined.
  void join_sum(const Message& message) {
    auto& joined = sums_[{message.chunk, message.iteration}];
    joined.push_back(message);
    if (joined.size() < workers_.size()) {
      return;
    }
    const BufferRange where = protocol_of(message.to).landing(message);
    std::vector<float> sum(static_cast<std::size_t>(where.range.size()));
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const auto term = state_.workspace(NodeId(w)).view(where);
      std::transform(sum.begin(), sum.end(), term.begin(), sum.begin(), std::plus<>());
    }
    for (const Message& request : joined) {
      const auto place = written(request.to).view(where);
      std::copy(sum.begin(), sum.end(), place.begin());
      pending_.flights.add(
          {request, Payload(place, nullptr), Flight::Stage::kRead, random_.uniform()});
    }
    sums_.erase({message.chunk, message.iteration});
  }

  void finish(std::size_t index) {
    Work work = pick(pending_.works, index).work;
    on_work(work);
    Payload output = written(work.node).execute(work);
    work.sources.clear();
    const NodeId node = work.node;
    handle(Finished{std::move(work), std::move(output)}, node);
  }

  Topology topology_;
  const ChunkMap& chunks_;
  std::vector<Protocol*> hosts_;
  TrainingState state_;
  Iteration iterations_;
  Random random_;
  std::size_t rivals_;  // 1: haste has no effect
  std::vector<HastyWorker> workers_;
  CreditWatch credits_;
  Loans loans_;
  Pending pending_;
  Outages outages_;
  Choices choices_{topology_, pending_, outages_};
  bool has_written_ = false;  // in this event
  std::array<std::int64_t, kMessageKinds> messages_{};
  std::map<std::pair<ChunkId, Iteration>, std::vector<Message>> sums_;  // that workers wait for
};

}  // namespace sluice::testing
