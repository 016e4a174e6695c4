#include "nodes/elastic_worker.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "nodes/worker.h"
#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;

TEST(ElasticWorker, StepsByItselfAndVisitsTheServerOnceAPeriod) {
  Job job;
  job.layers = lay_out({"only"}, {10});
  job.topology = Topology(2, 1, 1);
  job.strategy.algorithm = Algorithm::kEasgd;
  job.strategy.partition = Partition::kLayer;
  job.strategy.period = 3;
  auto chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
  Worker worker(job, chunks, NodeId(1), make_algorithm<ElasticWorker>);
  for (const Iteration iteration : {1, 2, 3, 4, 5, 6, 7}) {
    EffectLog world;
    worker.handle(GradientReady{NodeId(1), LayerId(0), iteration - 1}, world);
    ASSERT_EQ(world.started.size(), 1U);
    EXPECT_EQ(world.started[0].kind, WorkKind::kUpdate);
    EXPECT_EQ(world.started[0].contributors, 1U) << "its own gradient only";
    EXPECT_TRUE(world.sent.empty()) << "what it sends is the result";
    worker.handle(Finished{world.started[0], {}}, world);
    if (iteration % 3 != 0) {
      EXPECT_TRUE(world.sent.empty());
      EXPECT_EQ(world.released.size(), 1U);
      continue;
    }
    EXPECT_TRUE(world.released.empty()) << "it waits for the server";
    ASSERT_EQ(world.sent.size(), 1U);
    Message visit = world.sent[0].message;
    EXPECT_EQ(visit.kind, MessageKind::kElastic);
    EXPECT_EQ(visit.to, NodeId(2));
    EXPECT_EQ(visit.iteration, iteration);
    EXPECT_EQ(visit.payload_bytes, 40);
    std::swap(visit.from, visit.to);
    visit.kind = MessageKind::kParameters;
    EXPECT_EQ(worker.landing(visit).buffer, Buffer::kParameters);
    worker.handle(Received{visit, Payload(40)}, world);
    EXPECT_EQ(world.released, std::vector{(EffectLog::Release{LayerId(0), iteration})});
  }
}

}  // namespace
}  // namespace sluice
