// The threads driver: what it adds to the protocol, above all its ways to end. Runs under the
// thread sanitizer too.
#include <gtest/gtest.h>

#include "algorithms/presets.h"
#include "report/tally.h"
#include "runtime/gate.h"
#include "runtime/mailbox.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::run_threaded;
using testing::toy_learners;

// Fails in the middle of an iteration, when its peers wait for its gradients.
class FailingLearner final : public Learner {
 public:
  explicit FailingLearner(std::unique_ptr<Learner> inner) : inner_(std::move(inner)) {}
  const std::vector<Layer>& layers() const override { return inner_->layers(); }
  std::span<float> parameters() override { return inner_->parameters(); }
  std::span<float> gradients() override { return inner_->gradients(); }
  void gradients_into(std::span<float> buffer) override { inner_->gradients_into(buffer); }
  double step(Iteration iteration, StepHooks& hooks) override {
    if (iteration == 3) {
      throw std::runtime_error("the data ran out");
    }
    return inner_->step(iteration, hooks);
  }
  std::optional<Evaluation> evaluate() override { return inner_->evaluate(); }

 private:
  std::unique_ptr<Learner> inner_;
};

TEST(Threads, AFailingWorkerEndsTheRunWithItsReason) {
  auto learners = toy_learners({100, 50}, 3);
  learners[1] = std::make_unique<FailingLearner>(std::move(learners[1]));
  for (const Preset& preset : presets()) {
    try {
      run_threaded(learners, Topology(3, 1, 0), preset.strategy, {}, 10);
      ADD_FAILURE() << "the run should have failed";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the data ran out");
    }
  }
}

TEST(Threads, TheTallySeesWhatTheCountersCount) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    Strategy strategy = preset.strategy;
    strategy.slice_params = 16;
    const Topology topology(3, 1, 0);
    Tally tally(topology);
    const auto learners = toy_learners({100, 50, 7}, 3);
    const Assembly assembly = run_threaded(learners, topology, strategy, {}, 20, &tally);
    const Counters counters = assembly.counters();
    EXPECT_EQ(counters.releases, 3 * 3 * 21);
    EXPECT_GT(counters.messages, 0);
    std::int64_t bytes = 0;
    for (const Traffic& traffic : tally.sent_by_kind()) {
      bytes += traffic.bytes;
    }
    // A confirmation may still be on its way when the last worker has its parameters.
    EXPECT_LE(bytes, counters.payload_bytes);
    EXPECT_GT(bytes, counters.payload_bytes / 2);
  }
}

TEST(Threads, AClosedMailboxIsEmptiedFirst) {
  Mailbox mailbox;
  mailbox.post(Started{NodeId(3)});
  mailbox.close();
  std::deque<Event> events;
  EXPECT_TRUE(mailbox.wait(events));
  EXPECT_EQ(events.size(), 1U);
  events.clear();
  EXPECT_FALSE(mailbox.wait(events));
}

TEST(Threads, AGateReleasesInOrderOnly) {
  Gate gate(2);
  gate.release(LayerId(0), 0);
  EXPECT_TRUE(gate.wait(LayerId(0), 0));
  EXPECT_THROW(gate.release(LayerId(0), 0), InvariantError);
  EXPECT_THROW(gate.release(LayerId(1), 1), InvariantError);
  gate.cancel();
  EXPECT_THROW(gate.wait(LayerId(1), 0), Cancelled);
}

}  // namespace
}  // namespace sluice
