// Who is served first: if all began alike, all would flood one receiver.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "nodes/server_worker.h"
#include "nodes/shard.h"
#include "nodes/worker.h"
#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;

// Four hosts, each with a worker and a server that keeps a slice of the one layer.
struct FourHosts {
  explicit FourHosts(bool staggered = true) {
    job.layers = lay_out({"only"}, {40});
    job.topology = Topology(4, 1, 0);
    job.strategy.slice_params = 10;
    job.strategy.staggered = staggered;
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 4, job.strategy));
  }

  // To whom a worker sends its slices, in this order.
  std::vector<NodeId> pushes_of(std::size_t rank) const {
    EffectLog world;
    Worker worker(job, chunks, NodeId(rank), make_algorithm<ServerWorker>);
    worker.handle(GradientReady{NodeId(rank), LayerId(0), 0}, world);
    return receivers_in(world);
  }
  // To whom a server sends the parameters of its slice.
  std::vector<NodeId> labels_of(std::size_t server) const {
    EffectLog world;
    const NodeId self = job.topology.server(server);
    Shard shard(job, chunks, self);
    for (std::size_t w = 0; w < 4; ++w) {
      Message push;
      push.from = NodeId(w);
      push.to = self;
      push.chunk = ChunkId(server);
      push.iteration = 1;
      shard.handle(Received{push, Payload(40)}, world);
    }
    EXPECT_EQ(world.started.size(), 1U);
    shard.handle(Finished{world.started.at(0), {}}, world);
    return receivers_in(world);
  }

  static std::vector<NodeId> receivers_in(const EffectLog& world) {
    std::vector<NodeId> receivers;
    for (const auto& sending : world.sent) {
      receivers.push_back(sending.message.to);
    }
    return receivers;
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
};

TEST(Stagger, EveryWorkerBeginsWithAnotherServer) {
  const FourHosts hosts;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    std::set<NodeId> receivers;
    for (std::size_t w = 0; w < 4; ++w) {
      ASSERT_EQ(hosts.pushes_of(w).size(), 4U);
      receivers.insert(hosts.pushes_of(w)[turn]);
    }
    EXPECT_EQ(receivers.size(), 4U) << "turn " << turn;
  }
}

TEST(Stagger, AsInThePaperAllBeginWithTheFirst) {
  const FourHosts hosts(false);
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(hosts.pushes_of(w).at(0), hosts.job.topology.server(0));
  }
}

TEST(Stagger, EveryServerBeginsWithAnotherWorker) {
  const FourHosts hosts;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    std::set<NodeId> receivers;
    for (std::size_t s = 0; s < 4; ++s) {
      ASSERT_EQ(hosts.labels_of(s).size(), 4U);
      receivers.insert(hosts.labels_of(s)[turn]);
    }
    EXPECT_EQ(receivers.size(), 4U) << "turn " << turn;
  }
}

}  // namespace
}  // namespace sluice
