#include "nodes/algorithms.h"

#include <array>
#include <cstddef>
#include <utility>

#include "model/names.h"
#include "nodes/ad_psgd_worker.h"
#include "nodes/allreduce_worker.h"
#include "nodes/elastic_server.h"
#include "nodes/elastic_worker.h"
#include "nodes/gossip_worker.h"
#include "nodes/local_steps_worker.h"
#include "nodes/server_worker.h"
#include "nodes/shard.h"
#include "nodes/stale_worker.h"

namespace sluice {
namespace {

std::unique_ptr<WorkerAlgorithm> make_bsp(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                          NodeId self, Completion& done) {
  MakeAlgorithm* const make =
      job.strategy.uses_servers() ? make_algorithm<ServerWorker> : make_algorithm<AllReduceWorker>;
  return make(job, std::move(chunks), self, done);
}

std::unique_ptr<WorkerAlgorithm> make_ad_psgd(const Job& job,
                                              std::shared_ptr<const ChunkMap> chunks, NodeId self,
                                              Completion& done) {
  MakeAlgorithm* const make =
      self.index() % 2 == 0 ? make_algorithm<ActiveWorker> : make_algorithm<PassiveWorker>;
  return make(job, std::move(chunks), self, done);
}

bool always(const Strategy& /*strategy*/) { return true; }

// With no staleness all wait for all.
bool if_stale(const Strategy& strategy) { return strategy.staleness > 0; }

// A pair needs nobody else; a sum needs all, unless those that are left can give it up.
bool if_in_pairs_or_given_up(const Strategy& strategy) {
  return strategy.exchange == Exchange::kGossip || strategy.sums_can_be_given_up();
}

template <class Server>
std::unique_ptr<Protocol> make_server(const Job& job, std::shared_ptr<const ChunkMap> chunks,
                                      NodeId self) {
  return std::make_unique<Server>(job, std::move(chunks), self);
}

}  // namespace

const AlgorithmNodes& nodes_of(Algorithm algorithm) {
  using enum MessageKind;
  static constexpr std::array kNodes{
      AlgorithmNodes{Algorithm::kBsp,
                     make_bsp,
                     make_server<Shard>,
                     {kPush, kNotify, kPull, kParameters, kReduce, kGather}},
      AlgorithmNodes{Algorithm::kAsp,
                     make_algorithm<ServerWorker>,
                     make_server<Shard>,
                     {kPush, kParameters},
                     always},
      AlgorithmNodes{Algorithm::kSsp,
                     make_algorithm<StaleWorker>,
                     make_server<Shard>,
                     {kPush, kPull, kParameters},
                     if_stale},
      AlgorithmNodes{Algorithm::kEasgd,
                     make_algorithm<ElasticWorker>,
                     make_server<ElasticServer>,
                     {kElastic, kParameters},
                     always},
      AlgorithmNodes{Algorithm::kLocal,
                     make_algorithm<LocalStepsWorker>,
                     nullptr,
                     {kReduce, kGather, kShare},
                     if_in_pairs_or_given_up},
      AlgorithmNodes{Algorithm::kGossip, make_algorithm<GoSgdWorker>, nullptr, {kShare}, always},
      AlgorithmNodes{Algorithm::kAdPsgd, make_ad_psgd, nullptr, {kSwap, kSwapped}, always},
      AlgorithmNodes{
          Algorithm::kPipe, make_algorithm<AllReduceWorker>, nullptr, {kReduce, kGather}},
  };
  static_assert(has_all_values(kNodes), "each algorithm has one row, in the order of the enum");
  return kNodes[static_cast<std::size_t>(algorithm)];
}

}  // namespace sluice
