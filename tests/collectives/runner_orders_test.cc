#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "collectives/runner.h"
#include "model/job.h"

namespace sluice {
namespace {

// Runners of all ranks that exchange messages in an order drawn from a seed. Values are whole
// numbers, so sums do not depend on the order.
class RunnerWorld {
 public:
  RunnerWorld(const Strategy& strategy, Collective collective, std::size_t ranks,
              std::int64_t params, std::uint64_t seed)
      : random_(seed) {
    Job job;
    job.layers = lay_out({"a", "b"}, {params, params / 2 + 1});
    job.topology = Topology(ranks, 1, 0);
    job.strategy = strategy;
    chunks_ = std::make_shared<ChunkMap>(make_chunks(job.layers, 1, strategy));
    const auto total = static_cast<std::size_t>(total_params(job.layers));
    for (std::size_t r = 0; r < ranks; ++r) {
      nodes_.push_back(std::make_unique<Node>(*this));
      nodes_.back()->runner = std::make_unique<CollectiveRunner>(
          strategy, std::vector<Collective>(chunks_->size(), collective), NodeId(r),
          AggregationGroups(job), chunks_);
      for (std::size_t i = 0; i < total; ++i) {
        nodes_.back()->gradients.push_back(static_cast<float>((i * 7 + r * 3) % 50));
      }
    }
    for (std::size_t i = 0; i < total; ++i) {
      float sum = 0;
      for (const auto& node : nodes_) {
        sum += node->gradients[i];
      }
      expected_.push_back(sum);
    }
  }

  // Every rank begins every chunk at some time. True if all of them finish.
  bool run() {
    for (auto& node : nodes_) {
      for (std::size_t c = 0; c < chunks_->size(); ++c) {
        events_.emplace_back([&node, c] {
          for (const auto& done : node->runner->begin(ChunkId(c), 1, *node)) {
            node->note(done);
          }
        });
      }
    }
    while (!events_.empty()) {
      const std::size_t next = random_.below(events_.size());
      std::swap(events_[next], events_.back());
      const auto event = std::move(events_.back());
      events_.pop_back();
      event();
    }
    for (const auto& node : nodes_) {
      std::size_t segments = 0;
      for (std::size_t c = 0; c < chunks_->size(); ++c) {
        segments += node->runner->segments_of(ChunkId(c));
      }
      if (node->done.size() != segments) {
        return false;
      }
    }
    return true;
  }

  bool all_have_the_sum() const {
    for (const auto& node : nodes_) {
      if (node->gradients != expected_) {
        return false;
      }
    }
    return true;
  }
  bool lent_was_kept() const { return lent_was_kept_; }

 private:
  struct Node final : Effects {
    explicit Node(RunnerWorld& world) : world(world) {}

    void send(const Message& message, Payload payload) override {
      const std::vector<float> now(payload.values().begin(), payload.values().end());
      world.events_.emplace_back([this, message, payload, now] {
        world.deliver(message, payload, now);
        if (message.wants_return) {
          world.events_.emplace_back(
              [this, message] { note(runner->handle(Returned{message}, *this)); });
        }
      });
    }
    void start(Work work) override {
      world.events_.emplace_back([this, work = std::move(work)]() mutable {
        for (const Payload& source : work.sources) {
          std::ranges::transform(view(work.range), source.values(), view(work.range).begin(),
                                 std::plus<>());
        }
        work.sources.clear();
        note(runner->handle(Finished{work, {}}, *this));
      });
    }
    void release(NodeId /*worker*/, LayerId /*layer*/, Iteration /*iteration*/) override {}
    Payload borrow(NodeId /*node*/, const BufferRange& what) override {
      return {view(what.range), nullptr};
    }
    Payload copy(NodeId /*node*/, const BufferRange& what) override {
      const auto values = view(what.range);
      return Payload::owning(std::vector<float>(values.begin(), values.end()));
    }

    std::span<float> view(const Range& range) {
      return std::span(gradients).subspan(static_cast<std::size_t>(range.begin),
                                          static_cast<std::size_t>(range.size()));
    }
    void note(const std::optional<CollectiveRunner::Done>& of) {
      if (of) {
        check(done.emplace(of->chunk, of->segment).second, "a segment is done once");
        const Range range = runner->range_of(of->chunk, of->segment);
        check(std::ranges::equal(view(range), std::span(world.expected_)
                                                  .subspan(static_cast<std::size_t>(range.begin),
                                                           static_cast<std::size_t>(range.size()))),
              "the sum of a segment is in place when it is done");
      }
    }

    RunnerWorld& world;
    std::vector<float> gradients;
    std::unique_ptr<CollectiveRunner> runner;
    std::set<std::pair<ChunkId, std::uint32_t>> done;
  };

  // The payload is read on delivery and must not have changed since it was sent.
  void deliver(const Message& message, const Payload& payload, const std::vector<float>& sent) {
    const auto values = payload.values();
    lent_was_kept_ = lent_was_kept_ && std::equal(values.begin(), values.end(), sent.begin());
    Node& to = *nodes_[message.to.index()];
    const BufferRange where = to.runner->landing(message);
    if (where.buffer != Buffer::kNone) {
      std::copy(sent.begin(), sent.end(), to.view(where.range).begin());
    }
    to.note(to.runner->handle(Received{message, Payload::owning(sent)}, to));
  }

  Random random_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<float> expected_;
  std::vector<std::function<void()>> events_;
  bool lent_was_kept_ = true;
};

RC_GTEST_PROP(CollectiveRunnerProperty, EveryRankEndsWithTheSum, ()) {
  Strategy strategy;
  strategy.exchange = Exchange::kAllReduce;
  strategy.partition = Partition::kLayer;
  strategy.segment_params = *rc::gen::inRange<std::int64_t>(1, 40);
  const Collective collective = *rc::gen::elementOf(kPlannedCollectives);
  RunnerWorld ranks(strategy, collective, *rc::gen::inRange<std::size_t>(1, 10),
                    *rc::gen::inRange<std::int64_t>(1, 60), *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(ranks.run());
  RC_ASSERT(ranks.all_have_the_sum());
  RC_ASSERT(ranks.lent_was_kept());
}

TEST(CollectiveRunner, RefusesWhatNoPlanHas) {
  Strategy strategy;
  strategy.exchange = Exchange::kAllReduce;
  strategy.partition = Partition::kLayer;
  Job job;
  job.layers = lay_out({"a"}, {12});
  job.topology = Topology(3, 1, 0);
  job.strategy = strategy;
  const auto chunks = std::make_shared<ChunkMap>(make_chunks(job.layers, 1, strategy));
  const CollectiveRunner runner(strategy, {Collective::kBinaryTree}, NodeId(0),
                                AggregationGroups(job), chunks);
  Message message;
  message.kind = MessageKind::kGather;
  message.iteration = 1;
  message.round = 99;
  EXPECT_THROW(runner.landing(message), InvariantError);
  // Rank 0 is the root, which only sends there.
  message.round =
      static_cast<std::uint16_t>(make_plan(Collective::kBinaryTree, 0, 3, {0, 12}).size() - 1);
  EXPECT_THROW(runner.landing(message), InvariantError);
}

}  // namespace
}  // namespace sluice
