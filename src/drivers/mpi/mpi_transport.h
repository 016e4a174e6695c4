#pragma once

#include <mpi.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "drivers/mpi/mpi_requests.h"
#include "drivers/mpi/mpi_window.h"
#include "drivers/mpi/sum_sequence.h"
#include "drivers/processes/process_world.h"
#include "drivers/realtime/clock.h"
#include "drivers/realtime/gate.h"
#include "drivers/realtime/incoming.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/peer_transport.h"
#include "drivers/realtime/shared_sums.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "protocol/message_rules.h"
#include "wire/header.h"

namespace sluice {

// Hosts that are processes of one MPI job. The rank of a host is its number.
//
// A message is a frame: its header, followed by the payload if that is short enough for MPI to send
// eagerly. A longer payload follows in a message of its own, directly from the sender's memory to
// the place that the receiver's protocol names. MPI keeps the order of frames between two
// processes, and that of payloads, so payloads are received in the order of their frames. An empty
// frame is the last one.
//
// A payload goes by a synchronous send, which is complete when the receiver has taken it: that
// returns the credit and the memory at once. Where nothing is urgent and no host can flood another,
// as in an all-reduce without priority, a plain send saves the acknowledgement.
//
// A worker's request for a sum becomes an MPI_Iallreduce over all processes, or a sum in shared
// memory, in place where the protocol wants it.
class MpiTransport final : public PeerTransport {
 public:
  using World = TransportSpec;

  explicit MpiTransport(World world);
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  void send(const Message& message, Payload payload) override;
  void accepted(const Message& message) override;
  bool progress(Landing& landing) override;
  bool is_busy() const override { return !is_idle() || !sums_.empty(); }
  std::optional<Duration> patience() const override;

  MessageCount count() const override { return count_; }
  void lose(std::size_t /*rank*/) override { fail_check("MPI loses nobody"); }
  void part() override { parting_ = true; }
  bool parted() const override;
  std::vector<Transfer> transfers() const override {
    return {transfers_.begin(), transfers_.end()};
  }

 private:
  static constexpr Bytes kInlineBytes = kEagerParams * kFloatBytes;
  // Processes that share memory with the sender do not need a copy.
  static constexpr Bytes kInlineInMemory = 4096;
  // Of a frame in its buffer.
  static constexpr std::size_t kFrameOffset =
      (alignof(float) - kHeaderBytes % alignof(float)) % alignof(float);

  void confirm(const Message& message);
  void send_away(const Message& message, Payload payload);
  void open_window();
  bool begin_sums(Landing& landing);
  void begin_sum(std::span<float> values, std::function<void()> done);
  bool is_idle() const { return requests_.size() == 1 && (!shared_sums_ || shared_sums_->empty()); }
  void on_frame(const MPI_Status& status, Landing& landing);
  Payload take_payload(const Message& message, std::span<const std::byte> payload,
                       Landing& landing);
  void receive_payload(const Message& message, int source, Landing& landing);
  Message decode(std::span<const std::byte> frame, int source);
  // Posts a message that has come whole.
  void deliver(const Message& message, const Payload& payload);
  void await_frame();
  void say_farewell();
  std::size_t rank_of(NodeId node) const { return world_.topology.host_of(node).index(); }
  bool is_here(NodeId node) const { return rank_of(node) == static_cast<std::size_t>(rank_); }

  bool workers_wait() const;

  World world_;
  Bytes inline_bytes_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::size_t peers_ = 0;
  std::shared_ptr<std::byte[]> incoming_;  // with the payload's floats aligned
  std::optional<MPI_Status> arrived_;      // in incoming_
  MpiRequests requests_;                   // always includes one for the next frame
  std::optional<Incoming> checks_;
  SumSequence sums_;
  std::optional<MpiWindow> window_;
  std::optional<SharedSums> shared_sums_;
  std::list<Transfer> transfers_;
  Time last_movement_{0};
  int vain_looks_ = 0;  // since then
  MessageCount count_;
  std::size_t parted_peers_ = 0;
  bool parting_ = false;
  bool said_farewell_ = false;
};

}  // namespace sluice
