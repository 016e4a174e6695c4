#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drivers/realtime/gate.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/offloading.h"
#include "drivers/realtime/phase.h"
#include "drivers/realtime/transport.h"
#include "drivers/realtime/work_threads.h"

namespace sluice {

// Runs the protocol of one host in real time, on the thread that calls run(). It first handles all
// events, then does one unit of arithmetic, and sleeps when there is neither. Where the transport
// needs the thread, other threads do long updates and sums, pack and unpack; Effects::start
// explains why nobody reads what they are writing. Whatever waits for a device is done by one of
// them, too.
class HostLoop final : private Effects, private Landing {
 public:
  struct World {
    Mailbox& mailbox;
    Transport& transport;
    Gates& gates;                                         // those of the host's workers are added
    std::optional<Offloading> offloading = std::nullopt;  // none: the loop does everything
  };

  HostLoop(const Phase& phase, HostId host, const World& world);

  // Returns when the mailbox has been closed and all work is done.
  void run();
  // The same step by step, for a thread that has more to do. turn() does what there is to do, and
  // is true if anything moved. rest() waits for events as long as the transport may sleep, but no
  // longer than `limit`, and not at all if that is zero; it is false when all is over.
  bool turn();
  bool rest(std::optional<Duration> limit = std::nullopt);

 private:
  struct Node {
    Node(Workspace& its, Gate* its_gate) : workspace(its), gate(its_gate) {}

    Workspace& workspace;
    Gate* gate;                 // a server has none
    std::mutex preparing;       // held while a work of the node is prepared
    std::mutex gathering;       // of what follows
    std::vector<Work> waiting;  // for a device
    bool waits = false;         // a thread does such works
  };
  struct Aside;
  using Flights = std::vector<std::pair<Message, Time>>;

  void send(const Message& message, Payload payload) override;
  void start(Work work) override;
  void release(NodeId worker, LayerId layer, Iteration iteration) override;
  Payload borrow(NodeId node, const BufferRange& what) override;
  Payload copy(NodeId node, const BufferRange& what) override;
  std::span<float> place(const Message& message) override;

  void handle(const Event& event);
  void receive(const Received& event);
  void do_work();
  Payload execute(const Work& work);
  // Any thread may call these, but only one at a time for a range.
  static void prepare(Node& node, WorkInParts& doing);
  void observe_work(const Work& work, Time begin);
  bool goes_aside(const Work& work) const;
  void start_aside(Work work);
  // Of works that wait for a device.
  void start_waiting(Work work);
  // Does all that are there, again and again until there are none. By another thread.
  void do_waiting(Node& node);
  // Another thread does this; the loop hears of an exception.
  template <class Task>
  void do_aside(Task task);
  // By any thread: a pass over all parts of a work.
  void start_pass(const std::shared_ptr<Aside>& aside);
  void do_part(const std::shared_ptr<Aside>& aside, std::size_t part);
  // After the mailbox was closed: true if the work of other threads has produced more to do.
  bool finish_aside();
  void observe_sent(const Message& message);
  void observe_received(const Message& message, Time begin);
  // When this message, which has just landed, was sent; none if it was not tracked.
  static std::optional<Time> take(Flights& flights, const Message& message);

  World world_;
  const Strategy& strategy_;
  Protocol& protocol_;
  std::mutex in_protocol_;  // and in arriving_: a thread of the transport asks for places
  const Clock& clock_;
  Observer* observer_;  // null: nobody watches
  std::unordered_map<NodeId, Node> nodes_;
  std::deque<Event> events_;
  std::deque<Work> works_;
  // Only kept for the observer.
  Flights in_flight_;
  Flights arriving_;
  std::mutex observing_work_;
  std::optional<WorkThreads> aside_;  // ends before the state that it works on
};

}  // namespace sluice
