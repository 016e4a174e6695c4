#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drivers/processes/heartbeat.h"
#include "drivers/processes/letters.h"
#include "drivers/processes/message_census.h"
#include "drivers/processes/position_watch.h"
#include "drivers/realtime/finish_line.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/peer_transport.h"
#include "drivers/realtime/phase.h"
#include "drivers/realtime/warn.h"
#include "model/layer.h"

namespace sluice {

// Wraps a transport and keeps the processes of a job informed of each other. One of them leads:
// each sends it its steps, its heartbeat, and a message when its workers are done. The leader sends
// heartbeats too, warns of stalls, and tells all when everyone is done and nothing is in flight.
// Then the transport parts from its peers, and when all have parted the mailbox is closed. A
// process that falls silent before that ends the run.
//
// When all workers are done, messages may still be in flight. So the leader asks all processes how
// many they have sent and received, until a MessageCensus says that nothing is.
//
// A process that was interrupted tells the leader, which has all processes hold their workers,
// learns how far they have come, and tells all where to stop.
//
// A process that was lost has nothing more to say: the others go on as if it had said all, if their
// protocols do. If it led, the lowest rank that is left leads. What a leader tells all of them, all
// have heard before its loss or nobody has, so they agree on how far it has got.
class Supervision final : public Transport {
 public:
  struct World {
    Letters& letters;
    std::size_t rank;
    std::size_t leader;  // when the phase begins
    PeerTransport& transport;
    const Topology& topology;
    const Gates& gates;                // of this process's workers; a server's has none
    FinishLine& line;                  // likewise
    std::function<int()> interrupted;  // as in a phase
    const ChunkMap& chunks;
    const std::vector<Layer>& layers;
    std::size_t workers;  // of all processes
    bool open;            // as in a phase
    bool together;        // they are in lock step
    const Clock& clock;
    Mailbox& mailbox;
    Warn warn;
  };

  explicit Supervision(World world);

  void send(const Message& message, Payload payload) override;
  void accepted(const Message& message) override;
  bool progress(Landing& landing) override;
  bool is_busy() const override { return world_.transport.is_busy(); }
  std::optional<Duration> patience() const override { return world_.transport.patience(); }

  // Called from the workers' threads.
  void stepped(std::size_t rank, Iteration iteration, std::optional<double> loss);
  void finished();                        // one of them
  void failed(std::exception_ptr error);  // progress() throws it

  // At the end: the signal after which the leader told all to stop.
  std::optional<int> stopped() const { return stopped_; }

  // In the leader, from any thread: the steps reported since the last call.
  std::vector<StepReport> take_reports();

 private:
  // The kinds of messages between the leader and the others: the topic, then a text.
  enum class Topic : char {
    kSteps = 's',        // to the leader
    kHeartbeat = 'v',    // to the leader, every second
    kAlive = 'a',        // to all, every second
    kInterrupted = 'i',  // to the leader: by which signal
    kHold = 'h',         // to all: hold the workers, because of this signal
    kHeld = 'H',         // to the leader: the first iteration that they have not begun
    kStop = 'S',         // to all: the first iteration that does not run, and the signal
    kDone = 'd',         // to the leader: all workers of this process are, before which iteration
    kCount = 'q',        // to all: how many messages have you sent and received? The round
    kCounted = 'Q',      // to the leader: the round, and so many
    kAllDone = 'A',      // to all: nothing is in flight, part from each other
    kBye = 'b',          // to the leader: parted from all; the last message of this process
    kClose = 'c',        // to all: all have parted; the last message
  };

  void tell(std::size_t to, Topic topic, const std::string& text = "");
  // Whoever tells itself something hears it at once.
  void tell_leader(Topic topic, const std::string& text);
  void tell_all(Topic topic, const std::string& text = "");
  void look_around();
  bool is_due(Time& next, Duration interval) const;
  void listen();
  void hear(std::size_t rank, const std::string& letter);
  void lose(std::size_t rank);
  void follow_next_leader();
  void pass_on_workers();
  void look_for_interrupt();
  void hold_all(int signal);
  void process_held(std::size_t rank, Iteration begun);
  void stop_if_all_held();
  void stop(Iteration at, int signal);
  void tell_done();
  void process_done(std::size_t rank, Iteration at);
  void count_if_all_done();
  void count_all();
  void answer_count();
  void process_counted(std::int64_t round, const MessageCount& count);
  void all_done();
  void beat();
  void expect_life(std::size_t rank) const;
  void look_for_stalls(Time now);
  void look_for_early_ends() const;
  void close_if_over();
  // Whether this holds of all processes that are not lost.
  template <class F>
  bool all_others(F holds) const;
  bool leads() const { return leader_ == rank_; }
  Time now() const { return world_.clock.now(); }

  World world_;
  std::size_t rank_;
  std::size_t leader_;
  std::size_t size_;
  PositionWatch watch_;
  Time next_look_{0};
  Time next_report_{0};
  Time next_beat_{0};
  Time next_warning_{0};
  std::vector<bool> lost_;                      // by rank
  std::vector<Time> heard_;                     // by rank
  std::vector<Heartbeat> heartbeats_;           // by rank; in the leader
  std::vector<std::optional<Iteration>> done_;  // likewise: that have ended, and where
  std::vector<bool> held_;                      // likewise
  std::vector<bool> parted_;                    // likewise
  bool said_done_ = false;                      // the workers of this process are
  std::optional<std::int64_t> asked_;           // for the count of messages, in this round
  std::int64_t round_ = 0;                      // the last one
  std::optional<MessageCensus> census_;         // in the leader
  bool over_ = false;                           // all are done and nothing is in flight
  bool said_last_ = false;                      // kBye, or kClose in the leader
  bool closing_ = false;                        // kClose has come
  bool closed_ = false;
  bool interrupted_ = false;  // this process was, and the leader knows
  int stopping_ = 0;          // the signal after which all are asked to hold
  Iteration furthest_ = 0;    // of those that hold
  std::optional<int> stopped_;

  std::mutex mutex_;                 // of all below
  std::vector<StepReport> own_;      // steps of these workers, not passed on yet
  std::vector<StepReport> reports_;  // in the leader
  std::size_t finished_ = 0;         // of these workers
  std::exception_ptr error_;
};

}  // namespace sluice
