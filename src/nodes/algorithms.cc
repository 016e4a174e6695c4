#include "nodes/algorithms.h"

#include <array>
#include <cstddef>
#include <utility>

#include "model/names.h"
#include "nodes/allreduce_worker.h"
#include "nodes/elastic_server.h"
#include "nodes/elastic_worker.h"
#include "nodes/gossip_worker.h"
#include "nodes/server_worker.h"
#include "nodes/shard.h"
#include "nodes/stale_worker.h"

namespace sluice {
namespace {

template <class Node>
std::unique_ptr<Protocol> make_node(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                    NodeId self) {
  return std::make_unique<Node>(job, std::move(chunks), self);
}

std::unique_ptr<Protocol> make_bsp_worker(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                          NodeId self) {
  return job.strategy.uses_servers() ? make_node<ServerWorker>(job, std::move(chunks), self)
                                     : make_node<AllReduceWorker>(job, std::move(chunks), self);
}

}  // namespace

const AlgorithmNodes& nodes_of(Algorithm algorithm) {
  using enum MessageKind;
  static constexpr std::array kNodes{
      AlgorithmNodes{Algorithm::kBsp,
                     make_bsp_worker,
                     make_node<Shard>,
                     {kPush, kNotify, kPull, kParameters, kReduce, kGather}},
      AlgorithmNodes{
          Algorithm::kAsp, make_node<ServerWorker>, make_node<Shard>, {kPush, kParameters}},
      AlgorithmNodes{
          Algorithm::kSsp, make_node<StaleWorker>, make_node<Shard>, {kPush, kPull, kParameters}},
      AlgorithmNodes{Algorithm::kEasgd,
                     make_node<ElasticWorker>,
                     make_node<ElasticServer>,
                     {kElastic, kParameters}},
      AlgorithmNodes{Algorithm::kGossip, make_node<GoSgdWorker>, nullptr, {kShare}},
      AlgorithmNodes{Algorithm::kAdPsgd, make_node<AdPsgdWorker>, nullptr, {kSwap, kSwapped}},
      AlgorithmNodes{Algorithm::kPipe, make_node<AllReduceWorker>, nullptr, {kReduce, kGather}},
  };
  static_assert(has_all_values(kNodes), "each algorithm has one row, in the order of the enum");
  return kNodes[static_cast<std::size_t>(algorithm)];
}

}  // namespace sluice
