// How long an urgent slice waits behind bulk data: one host keeps the link to another full with
// slices, through the egress queue and a transport, and every few milliseconds another thread hands
// it an urgent one.
//
//   sluice lab --hosts 2 --rate 1gbit -- sluice_urgent tcp|mpi GBPS [PARAMETERS [PEER-CREDIT
//   [SLICES]]]
//
// GBPS is the rate of the link. By default, slices and the peer's credit (in bytes) are those that
// Sluice chooses at that rate, and there are 400 urgent slices. Rank 0 prints when the urgent
// slices began to be sent and when the receiver had taken them, in milliseconds from the hand-over;
// the wait, which is the latter less the time of the slice itself on the wire; and the share of the
// rate that all slices together used.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "drivers/mpi/mpi_transport.h"
#include "drivers/mpi/mpi_world.h"
#include "drivers/processes/carrier.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/socket_alarm.h"
#include "drivers/tcp/mesh.h"
#include "drivers/tcp/tcp_transport.h"
#include "nodes/presets.h"
#include "planner/tuning.h"
#include "report/table.h"
#include "scheduling/egress.h"

namespace sluice {
namespace {

constexpr std::uint32_t kUrgent = 0;
constexpr std::uint32_t kBulk = 1;
constexpr std::size_t kBacklog = 8;              // minimum number of waiting bulk slices
constexpr double kPayloadShare = 1448.0 / 1514;  // TCP payload of an Ethernet frame

const Topology kTwoHosts(2, 1, 0);
const NodeId kSender = kTwoHosts.worker(0);
const NodeId kReceiver = kTwoHosts.worker(1);

// The two ends belong to no job.
class TrustingRules final : public MessageRules {
 public:
  Result<void> check(const Message& /*message*/) const override { return {}; }
  Result<void> check_payload(const Message& /*message*/,
                             std::span<const std::byte> /*payload*/) const override {
    return {};
  }
  bool is_once_per_iteration() const override { return false; }
};

// One end of the link. Its loop is HostLoop's, without arithmetic.
class End : private Landing {
 public:
  End(ProcessWorld& world, const Strategy& strategy, const Carrier& carrier)
      : layers_(lay_out({"slice"}, {strategy.slice_params})),
        chunks_(make_chunks(layers_, 1, strategy)),
        slice_(static_cast<std::size_t>(strategy.slice_params)) {
    if (carrier.is_tcp()) {
      connect(world, carrier);
    } else {
      const auto alarm = watch_sockets(1);
      mailbox_ = std::make_shared<Mailbox>(alarm);
      transport_ = std::make_unique<MpiTransport>(MpiTransport::World{.topology = kTwoHosts,
                                                                      .chunks = chunks_,
                                                                      .rules = rules_,
                                                                      .first = 0,
                                                                      .clock = clock_,
                                                                      .mailbox = mailbox_,
                                                                      .gates = gates_,
                                                                      .alarm = alarm});
    }
  }
  virtual ~End() = default;
  End(const End&) = delete;
  End& operator=(const End&) = delete;

 protected:
  void run_while(const std::function<bool()>& unfinished) {
    std::deque<Event> events;
    while (unfinished()) {
      mailbox_->drain(events);
      for (; !events.empty(); events.pop_front()) {
        handle(events.front());
      }
      if (!transport_->progress(*this)) {
        mailbox_->wait(events, transport_->patience());
      }
    }
  }
  void part() {
    transport_->part();
    run_while([this] { return !transport_->parted(); });
  }

  virtual void handle(const Event& event) = 0;
  Time now() const { return clock_.now(); }
  Mailbox& mailbox() const { return *mailbox_; }
  PeerTransport& transport() { return *transport_; }
  Payload slice() const { return {slice_, nullptr}; }

 private:
  std::span<float> place(const Message& /*message*/) override { return slice_; }
  void connect(ProcessWorld& world, const Carrier& carrier) {
    const auto poller = carrier.threads == 0 ? std::make_shared<Poller>() : nullptr;
    mailbox_ = std::make_shared<Mailbox>(poller);
    auto sockets = connect_mesh(world.rank(), carrier.address,
                                [&](const std::string& own) { return world.all_gather(own); });
    check(static_cast<bool>(sockets), "TCP has been tried");
    transport_ = std::make_unique<TcpTransport>(TcpTransport::World{.topology = kTwoHosts,
                                                                    .rules = rules_,
                                                                    .rank = world.rank(),
                                                                    .clock = clock_,
                                                                    .mailbox = mailbox_,
                                                                    .threads = carrier.threads,
                                                                    .poller = poller},
                                                *std::move(sockets));
  }

  Clock clock_;
  std::vector<Layer> layers_;
  ChunkMap chunks_;
  std::vector<float> slice_;
  std::shared_ptr<Mailbox> mailbox_;
  Gates gates_;  // nobody trains
  TrustingRules rules_;
  std::unique_ptr<PeerTransport> transport_;
};

class Receiver final : public End {
 public:
  using End::End;

  void run() {
    run_while([this] { return !dismissed_; });
    part();
  }

 private:
  void handle(const Event& event) override {
    const auto* received = std::get_if<Received>(&event);
    dismissed_ |= received != nullptr && received->message.kind == MessageKind::kNotify;
  }

  bool dismissed_ = false;
};

struct Flight {
  Time handed{0};
  Time begun{0};
  Time taken{0};
};

struct Outcome {
  std::vector<Flight> flights;  // of the urgent slices
  Bytes bytes = 0;              // of all slices
  Duration elapsed{0};
};

class Sender final : public End, private Effects {
 public:
  Sender(ProcessWorld& world, const Strategy& strategy, const Carrier& carrier)
      : End(world, strategy, carrier), egress_(strategy, kTwoHosts) {}

  // Keeps the link full until this number of urgent slices has arrived.
  Outcome send(std::size_t urgent_slices) {
    outcome_ = {.flights = std::vector<Flight>(urgent_slices)};
    const Time begin = now();
    fill();
    {
      const std::jthread thread([this] { hand_over(); });
      run_while([&] { return taken_ < urgent_slices; });
    }
    outcome_.elapsed = now() - begin;
    Outcome outcome = outcome_;
    full_ = false;
    run_while([this] { return egress_.in_flight() > 0; });
    return outcome;
  }

  void dismiss_receiver() {
    transport().send(
        {.kind = MessageKind::kNotify, .from = kSender, .to = kReceiver, .chunk = ChunkId(0)}, {});
    part();
  }

 private:
  // Runs on its own thread, as a worker does.
  void hand_over() {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> pause_us(3000, 7000);
    for (std::size_t i = 0; i < outcome_.flights.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us(random)));
      outcome_.flights[i].handed = now();
      mailbox().post(GradientReady{kSender, LayerId(0), static_cast<Iteration>(i)});
    }
  }

  void handle(const Event& event) override {
    if (const auto* ready = std::get_if<GradientReady>(&event)) {
      enqueue(kUrgent, static_cast<std::uint32_t>(ready->iteration));
    } else if (const auto* sent = std::get_if<Sent>(&event);
               sent != nullptr && sent->message.payload_bytes > 0) {
      outcome_.bytes += sent->message.payload_bytes;
      if (sent->message.priority == kUrgent) {
        outcome_.flights[sent->message.segment].taken = now();
        ++taken_;
      }
      egress_.on_sent(sent->message, *this);
      fill();
    }
  }

  void fill() {
    while (full_ && egress_.waiting() < kBacklog) {
      enqueue(kBulk, 0);
    }
  }

  void enqueue(std::uint32_t priority, std::uint32_t number) {
    const Payload payload = slice();
    egress_.send({.priority = priority,
                  .from = kSender,
                  .to = kReceiver,
                  .chunk = ChunkId(0),
                  .segment = number,
                  .payload_bytes = payload.size()},
                 payload, *this);
  }

  void send(const Message& message, Payload payload) override {
    if (message.priority == kUrgent) {
      outcome_.flights[message.segment].begun = now();
    }
    transport().send(message, std::move(payload));
  }
  void start(Work) override { fail_check("nothing is computed here"); }
  void release(NodeId, LayerId, Iteration) override { fail_check("nothing waits here"); }
  Payload borrow(NodeId, const BufferRange&) override { fail_check("no node has a buffer"); }
  Payload copy(NodeId, const BufferRange&) override { fail_check("no node has a buffer"); }

  Egress egress_;
  Outcome outcome_;
  std::size_t taken_ = 0;
  bool full_ = true;
};

double quantile_ms(std::vector<Duration> times, double share) {
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + rank, times.end());
  return to_us(times[static_cast<std::size_t>(rank)]) / 1000;
}

std::vector<Duration> until(const Outcome& outcome, Time Flight::*moment, Duration less) {
  std::vector<Duration> times;
  for (const Flight& flight : outcome.flights) {
    times.push_back(flight.*moment - flight.handed - less);
  }
  return times;
}

std::string report(const Outcome& outcome, double gbps, Duration on_the_wire) {
  Table table({{""},
               {"median", Table::Align::kRight},
               {"95 %", Table::Align::kRight},
               {"worst", Table::Align::kRight}});
  const auto add = [&](const std::string& what, Time Flight::*moment, Duration less) {
    std::vector<std::string> row{what};
    for (const double share : {0.5, 0.95, 1.0}) {
      row.push_back(fmt::format("{:.2f}", quantile_ms(until(outcome, moment, less), share)));
    }
    table.add_row(row);
  };
  add("begun after, ms", &Flight::begun, {});
  add("taken after, ms", &Flight::taken, {});
  add("wait, ms", &Flight::taken, on_the_wire);
  const double used = static_cast<double>(outcome.bytes) * 8e-9 / to_seconds(outcome.elapsed);
  return table.render() +
         fmt::format("{:.3f} Gb/s, {:.1f} % of the rate\n", used, 100 * used / gbps);
}

int fail(const std::string& why) {
  fmt::print(stderr, "sluice_urgent: {}\n", why);
  return 2;
}

int measure(ProcessWorld& world, TransportKind transport, const std::vector<double>& numbers) {
  const double gbps = numbers[0];
  Job job{.layers = {}, .topology = Topology(2, 1, 0), .strategy = find_preset("p3")->strategy};
  job.link.ns_per_byte = 8 / gbps;
  tune_for_link(job, {}, transport == TransportKind::kMpi);
  Strategy& strategy = job.strategy;
  const auto number = [&](std::size_t i, double otherwise) {
    return i < numbers.size() ? numbers[i] : otherwise;
  };
  strategy.slice_params = std::llround(number(1, static_cast<double>(strategy.slice_params)));
  strategy.peer_credit = std::llround(number(2, static_cast<double>(strategy.peer_credit)));
  const auto slices = static_cast<std::size_t>(number(3, 400));
  if (world.size() != 2) {
    return fail("needs two processes");
  }
  world.meet();
  const Carrier carrier =
      choose_carrier(world, kTwoHosts, strategy, {.kind = transport, .threads = {}});
  if (world.rank() == 1) {
    Receiver(world, strategy, carrier).run();
    return 0;
  }
  Sender sender(world, strategy, carrier);
  const Outcome outcome = sender.send(slices);
  sender.dismiss_receiver();
  fmt::print("{}", report(outcome, gbps,
                          from_ns(static_cast<double>(strategy.slice_params * kFloatBytes) * 8 /
                                  (gbps * kPayloadShare))));
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  std::vector<double> numbers;
  const auto transport = sluice::value_of(sluice::kTransportNames, argc > 1 ? argv[1] : "nothing");
  for (int i = 2; i < argc; ++i) {
    numbers.push_back(std::atof(argv[i]));
  }
  const bool positive = std::all_of(numbers.begin(), numbers.end(), [](double n) { return n > 0; });
  if (!transport || numbers.empty() || numbers.size() > 4 || !positive) {
    return sluice::fail("expected tcp or mpi, then one to four numbers; see the source");
  }
  if (!sluice::find_launch()) {
    return sluice::fail("must be started by mpirun");
  }
  const auto world = sluice::join_mpi(
      [](const std::string& text) { sluice::fail(text); },
      [](std::size_t /*rank*/, const std::exception& why) { return sluice::fail(why.what()); });
  return world ? sluice::measure(**world, *transport, numbers)
               : sluice::fail(world.error().message());
}
