#include "state/saved_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

#include "partition/chunk_map.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

constexpr UpdateRule kWithMomentum{.momentum = 0.9F};

struct SavedToy {
  Strategy strategy;
  Topology topology{2, 1, 0};
  std::vector<std::unique_ptr<Learner>> learners = testing::toy_learners({5, 300, 40}, 2);
  ChunkMap chunks = make_chunks(learners.front()->layers(), 2, strategy);
  TrainingState state{topology, learners, chunks, strategy, kWithMomentum};

  HostState on(HostId host) { return {state, topology, chunks, true, host}; }
  // Gives every value of the host's nodes this one.
  void fill(HostId host, float value) {
    for (const NodeId node : topology.nodes_on(host)) {
      for (const Remembered& one : state.remembered(node, chunks, topology)) {
        for (const std::span<float> part : one.parts) {
          std::ranges::fill(part, value);
        }
      }
    }
  }
};

bool holds_only(const TensorCopy& copy, float value) {
  for (std::size_t at = 0; at < copy.bytes.size(); at += sizeof(value)) {
    if (std::memcmp(copy.bytes.data() + at, &value, sizeof(value)) != 0) {
      return false;
    }
  }
  return !copy.bytes.empty();
}

TEST(SavedStateTest, ACopyHasTheMemoryOfAnEarlierOneAndTheValuesOfNow) {
  SavedToy toy;
  const HostId host(1);
  toy.fill(host, 1);
  std::vector<TensorCopy> earlier = copy_state(toy.on(host));
  std::map<std::string, const std::byte*> memory;
  for (const TensorCopy& copy : earlier) {
    EXPECT_TRUE(holds_only(copy, 1)) << copy.name;
    memory[copy.name] = copy.bytes.data();
  }
  EXPECT_GE(memory.size(), 3U) << "a worker's parameters, a server's, and its momentum";
  toy.fill(host, 2);
  const std::vector<TensorCopy> later = copy_state(toy.on(host), std::move(earlier));
  EXPECT_EQ(later.size(), memory.size());
  for (const TensorCopy& copy : later) {
    EXPECT_TRUE(holds_only(copy, 2)) << copy.name;
    EXPECT_EQ(copy.bytes.data(), memory.at(copy.name)) << copy.name;
  }
}

TEST(SavedStateTest, AnEarlierCopyNeedNotFit) {
  SavedToy toy;
  const HostId host(0);
  toy.fill(host, 0);
  std::vector<TensorCopy> earlier = copy_state(toy.on(host));
  EXPECT_TRUE(earlier.empty()) << "zeros are left out";
  toy.fill(host, 3);
  earlier = copy_state(toy.on(host));
  for (TensorCopy& copy : earlier) {
    copy.bytes.resize(copy.bytes.size() / 2);
  }
  const std::vector<TensorCopy> later = copy_state(toy.on(host), std::move(earlier));
  for (const TensorCopy& copy : later) {
    EXPECT_TRUE(holds_only(copy, 3)) << copy.name;
    EXPECT_EQ(copy.bytes.size(), static_cast<std::size_t>(copy.shape.front()) * sizeof(float));
  }
}

}  // namespace
}  // namespace sluice
