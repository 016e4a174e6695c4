#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/plan.h"
#include "model/aggregation_groups.h"
#include "partition/chunk_map.h"
#include "protocol/message_rules.h"

namespace sluice {

// What the workers and servers of this job say to each other: the kinds of messages that its
// strategy has, between whom each of them goes, about which chunk, and how long it is.
class JobRules final : public MessageRules {
 public:
  JobRules(const Job& job, std::shared_ptr<const ChunkMap> chunks);

  Result<void> check(const Message& message) const override;
  Result<void> check_payload(const Message& message,
                             std::span<const std::byte> payload) const override;
  bool is_once_per_iteration() const override;

 private:
  struct Sizes {
    Bytes min = 0;
    Bytes max = 0;
  };

  // Each tells what is wrong; empty if nothing is.
  std::string fault_of(const Message& message) const;
  std::string fault_of_fields(const Message& message) const;
  std::string fault_of_hop(const Message& message) const;
  // The plan by which the receiver sums the segment; its ranges begin at 0.
  const Plan& plan_of(const Message& hop) const;
  std::size_t segments_of(ChunkId chunk) const;
  static std::string fault_of_size(const Message& message, const Sizes& sizes);

  bool has_kind(MessageKind kind) const;
  bool has_route(const Message& message) const;
  Sizes sizes_of(const Message& message) const;
  // Whether a server sends only the parameters that have changed.
  bool is_packed_answer(const Message& message) const;
  // Codes of a gathered codec, each of so many parameters.
  Result<void> check_codes(std::span<const std::byte> codes, std::int64_t params) const;
  // A gradient of so many parameters as the codec writes it, and all that are gathered of it.
  Sizes gradient_sizes(std::int64_t params, Iteration iteration) const;

  bool leads(NodeId node) const;
  bool follows(NodeId node, NodeId leader) const;
  bool are_workers(NodeId a, NodeId b) const;
  NodeId server_of(ChunkId chunk) const { return topology_.server((*chunks_)[chunk].server); }

  Strategy strategy_;
  Topology topology_;
  AggregationGroups groups_;
  Iteration first_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::vector<Collective> collectives_;  // by chunk; none if there are no hops
  // Made when first needed: few segments differ in length.
  mutable std::map<std::tuple<Collective, std::size_t, std::int64_t>, Plan> plans_;
};

}  // namespace sluice
