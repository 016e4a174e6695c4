#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/incoming.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/peer_transport.h"
#include "drivers/realtime/start_thread.h"
#include "drivers/tcp/mover.h"
#include "drivers/tcp/peer.h"
#include "drivers/tcp/poller.h"
#include "drivers/tcp/socket.h"
#include "model/topology.h"

namespace sluice {

// Hosts that are processes, with a TCP connection between each two of them. The rank of a host is
// its number.
//
// A payload goes from the sender's memory into the kernel, and from there to the place that the
// receiver's protocol names. The memory is free again when the kernel has it. The credit comes back
// when the receiver says that the message has come whole.
//
// Threads of the transport move the bytes, each of some connections. Without them the host's loop
// does it.
class TcpTransport final : public PeerTransport {
 public:
  struct World {
    const Topology& topology;
    const MessageRules& rules;
    std::size_t rank;
    const Clock& clock;
    std::shared_ptr<Mailbox> mailbox;  // of this host
    bool spins = false;                // the loop, while anything is in flight
    int threads = 0;                   // of the transport
    // With which the loop sleeps if it moves the bytes.
    std::shared_ptr<Poller> poller = nullptr;
    StartThread start = start_thread;
    // How long a closed connection is no failure: somebody may tell the reason meanwhile.
    Duration grace{0};
    // Told of each connection that stays closed, earlier than that; empty: nobody is.
    std::function<void(std::size_t rank)> cut_off = {};
  };

  // The sockets stand in the order of ranks; the own one is closed, and so are those of ranks that
  // are lost.
  TcpTransport(World world, std::vector<Socket> sockets);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  void send(const Message& message, Payload payload) override;
  void accepted(const Message& message) override;
  bool progress(Landing& landing) override;
  bool is_busy() const override { return shared_.outgoing > 0; }
  std::optional<Duration> patience() const override;

  MessageCount count() const override;
  void lose(std::size_t rank) override;
  void part() override;
  bool parted() const override;
  std::vector<Transfer> transfers() const override;

 private:
  void deal_connections();
  void start_threads();
  void look_for_losses();

  World world_;
  Incoming incoming_;
  PeerWorld shared_;
  std::vector<std::unique_ptr<Peer>> peers_;  // all that are connected
  std::vector<Peer*> by_rank_;                // others are null
  std::vector<bool> told_;                    // by rank: the world, that it is cut off
  std::vector<std::unique_ptr<Mover>> movers_;
  std::vector<Mover*> writers_;  // by rank
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;           // of a thread
  std::vector<std::jthread> threads_;  // end before all that they use
};

}  // namespace sluice
