// Which messages the workers of outer steps may send each other, beyond those of a plain
// all-reduce.
#include <gtest/gtest.h>

#include <vector>

#include "codecs/block_top_k.h"
#include "nodes/assembly.h"
#include "nodes/job_rules.h"
#include "nodes/presets.h"
#include "nodes/random_pairs.h"
#include "nodes/shuffled_runs.h"
#include "support/talkative.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

Job outer_job(std::string_view preset, std::size_t hosts) {
  Job job;
  job.layers = testing::ToyLearner(testing::kLayers, 0).layers();
  job.topology = Topology(hosts, 1, 0);
  job.strategy = testing::talkative(find_preset(preset)->strategy);
  job.strategy.slice_params = 16;
  return job;
}

// Of three workers, a hop carries the codes of one, two or all.
TEST(JobRulesOfOuterSteps, GatheredCodesPointIntoTheirBlocks) {
  const Job job = outer_job("sparseloco", 3);
  const Assembly assembly = assemble(job);
  const std::int64_t length = (*assembly.chunks)[ChunkId(0)].range.size();
  const BlockTopK codec(job.strategy.top_k);
  std::vector<float> values(static_cast<std::size_t>(length), 1.0F);
  const std::vector<std::byte> code = codec.take(values);
  Message hop;
  hop.kind = MessageKind::kReduce;
  hop.from = NodeId(2);
  hop.to = NodeId(0);
  hop.chunk = ChunkId(0);
  hop.priority = (*assembly.chunks)[ChunkId(0)].priority;
  hop.iteration = 3;
  std::vector<std::byte> codes;
  for (std::size_t count = 1; count <= 4; ++count) {
    codes.insert(codes.end(), code.begin(), code.end());
    hop.payload_bytes = std::ssize(codes);
    EXPECT_EQ(static_cast<bool>(assembly.rules->check(hop)), count <= 3);
    EXPECT_TRUE(assembly.rules->check_payload(hop, codes));
  }
  EXPECT_FALSE(assembly.rules->check_payload(hop, std::span(codes).first(codes.size() - 1)));
  codes[code.size()] = std::byte{0xff};
  codes[code.size() + 1] = std::byte{0xff};
  const bool has_positions = length > job.strategy.top_k.kept;
  EXPECT_EQ(static_cast<bool>(assembly.rules->check_payload(hop, codes)), !has_positions);
  ASSERT_TRUE(has_positions);
}

TEST(JobRulesOfOuterSteps, AShareGoesToThePartner) {
  const Job job = outer_job("noloco", 4);
  const Assembly assembly = assemble(job);
  Message share;
  share.kind = MessageKind::kShare;
  share.chunk = ChunkId(0);
  share.priority = (*assembly.chunks)[ChunkId(0)].priority;
  share.iteration = 3;
  share.payload_bytes = 2 * (*assembly.chunks)[ChunkId(0)].range.size() * kFloatBytes;
  share.from = NodeId(1);
  for (std::size_t to = 0; to < 4; ++to) {
    share.to = NodeId(to);
    EXPECT_EQ(static_cast<bool>(assembly.rules->check(share)),
              partner_of(job.topology, job.strategy.seed, share.from, 3) == share.to);
  }
  share.to = *partner_of(job.topology, job.strategy.seed, share.from, 3);
  share.payload_bytes /= 2;
  EXPECT_FALSE(assembly.rules->check(share));
}

}  // namespace
}  // namespace sluice
