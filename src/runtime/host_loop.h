#pragma once

#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compute/workspace.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "runtime/clock.h"
#include "runtime/gate.h"
#include "runtime/mailbox.h"
#include "runtime/transport.h"

namespace sluice {

// Runs the protocol of one host in real time, on the thread that calls run(). It first handles all
// that has happened, then does one piece of arithmetic, and sleeps when there is neither.
class HostLoop final : private Effects, private Landing {
 public:
  struct World {
    Protocol& protocol;
    Mailbox& mailbox;
    Transport& transport;
    const Clock& clock;
    Observer* observer = nullptr;
  };

  explicit HostLoop(const World& world) : world_(world) {}

  // A node of this host, with its numbers; a server has no gate.
  void add(NodeId node, Workspace& workspace, Gate* gate);
  // Returns when the mailbox has been closed and all is done.
  void run();

 private:
  struct Node {
    Workspace& workspace;
    Gate* gate;
  };
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
  void observe_sent(const Message& message);
  // When this message began its flight, which is over now; none if it had none.
  static std::optional<Time> take(Flights& flights, const Message& message);

  World world_;
  std::unordered_map<NodeId, Node> nodes_;
  std::deque<Event> events_;
  std::deque<Work> works_;
  // Only kept for the observer.
  Flights in_flight_;
  Flights arriving_;
};

}  // namespace sluice
