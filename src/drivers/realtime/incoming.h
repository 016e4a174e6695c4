#pragma once

#include <cstddef>
#include <mutex>
#include <span>

#include "drivers/realtime/transport.h"
#include "model/topology.h"
#include "protocol/message_rules.h"
#include "wire/repeats.h"

namespace sluice {

// Checks messages of other processes before anything of them is used; throws BadMessage with the
// rank that sent them. Any thread may call it.
class Incoming {
 public:
  // `rank` is that of this process: the number of its host.
  Incoming(const Topology& topology, const MessageRules& rules, std::size_t rank)
      : topology_(topology), rules_(rules), rank_(rank) {}

  // The message whose header the process of rank `source` has sent.
  Message decode(std::span<const std::byte> header, std::size_t source);
  // Where its payload belongs; empty if it has no place yet. The place that the protocol names is
  // free once the header has arrived: its owner no longer uses what this message answers or
  // completes.
  std::span<float> place(const Message& message, Landing& landing);
  void check_payload(const Message& message, std::span<const std::byte> payload);

 private:
  std::size_t rank_of(NodeId node) const { return topology_.host_of(node).index(); }

  const Topology& topology_;
  const MessageRules& rules_;
  std::size_t rank_;
  std::mutex mutex_;
  Repeats repeats_;
};

}  // namespace sluice
