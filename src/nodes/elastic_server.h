#pragma once

#include <memory>

#include "model/job.h"
#include "partition/chunk_map.h"
#include "protocol/protocol.h"

namespace sluice {

// EASGD's server: keeps the centre, and on every visit pulls it and the visitor towards each other.
class ElasticServer final : public Protocol {
 public:
  ElasticServer(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self);

  void handle(const Event& event, Effects& effects) override;
  BufferRange landing(const Message& message) const override;

 private:
  std::shared_ptr<const ChunkMap> chunks_;
  NodeId self_;
  float pull_;
};

}  // namespace sluice
