// The loop of one host, on its own and on the threads driver with every update on the other thread.
// Runs under the thread sanitizer too.
#include "drivers/realtime/host_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "drivers/threads/thread_transport.h"
#include "nodes/presets.h"
#include "partition/about.h"
#include "support/talkative.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::toy_learners;

constexpr Offloading kEverything{.while_busy = 0, .while_idle = 0};
constexpr Offloading kInParts{.while_busy = 0, .while_idle = 0, .threads = 3, .min_part = 1};
constexpr Offloading kNothing{.while_busy = 1 << 30, .while_idle = 1 << 30};

// A scripted protocol that records its events.
class Scripted final : public Protocol {
 public:
  using Step = std::function<void(const Event& event, Effects& effects)>;

  explicit Scripted(Step step) : step_(std::move(step)) {}

  void handle(const Event& event, Effects& effects) override {
    if (std::holds_alternative<Started>(event)) {
      heard.emplace_back("started");
    } else if (const auto* finished = std::get_if<Finished>(&event)) {
      heard.push_back("finished " + std::to_string(finished->work.round));
      EXPECT_TRUE(finished->work.sources.empty()) << "they are released";
    } else if (const auto* received = std::get_if<Received>(&event)) {
      heard.push_back("received " + std::to_string(received->message.round));
    } else {
      heard.emplace_back("other");
    }
    step_(event, effects);
  }
  BufferRange landing(const Message& message) const override {
    return message.kind == MessageKind::kParameters ? landing_ : BufferRange{};
  }

  std::vector<std::string> heard;

 private:
  Step step_;
  BufferRange landing_{Buffer::kParameters, {2, 4}};
};

// One host with one worker, and the loop that runs it.
class LoopOfOne {
 public:
  explicit LoopOfOne(Scripted::Step step, std::optional<Offloading> offloading = std::nullopt,
                     Codec codec = Codec::kNone)
      : protocol(std::move(step)), codec_(codec), offloading_(offloading) {}

  void run() {
    const std::vector<Protocol*> hosts{&protocol};
    const Phase phase{.topology = job_.topology,
                      .chunks = *assembly_.chunks,
                      .strategy = job_.strategy,
                      .rules = *assembly_.rules,
                      .hosts = hosts,
                      .state = state_,
                      .last = 1,
                      .clock = clock_,
                      .on_step = {},
                      .on_boundary = {}};
    Gates gates;
    HostLoop loop(phase, HostId(0), {transport.mailbox(HostId(0)), transport, gates, offloading_});
    loop.run();
  }

  // An update of all parameters, identified by its round.
  Work update(std::uint16_t round, std::size_t source_size = kSize) const {
    Work work = work_on(*assembly_.chunks, ChunkId(0), WorkKind::kUpdate, NodeId(0), 1);
    work.round = round;
    work.sources.push_back(Payload::owning(std::vector<float>(source_size, 1.0F)));
    return work;
  }
  std::span<float> parameters() { return learners_.front()->parameters(); }
  Mailbox& mailbox() { return transport.mailbox(HostId(0)); }

  static constexpr std::size_t kSize = 10;
  ThreadTransport transport{Topology(1, 1, 0)};
  Scripted protocol;

 private:
  Strategy strategy() const {
    Strategy packed = find_preset("wfbp")->strategy;
    packed.codec = codec_;
    return packed;
  }

  Codec codec_;
  std::optional<Offloading> offloading_;
  std::vector<std::unique_ptr<Learner>> learners_ = toy_learners({kSize}, 1);
  Job job_ = testing::job_for(learners_, Topology(1, 1, 0), strategy());
  Assembly assembly_ = assemble(job_);
  TrainingState state_ = testing::state_for(learners_, assembly_, {.rate = {.base = 1}});
  Clock clock_;
};

TEST(HostLoopThreads, HandlesAllThatHasHappenedBeforeEachWork) {
  LoopOfOne* self = nullptr;
  LoopOfOne loop([&](const Event& event, Effects& effects) {
    if (std::holds_alternative<Started>(event)) {
      effects.start(self->update(1));
      effects.start(self->update(2));
    }
  });
  self = &loop;
  loop.mailbox().post(Started{NodeId(0)});
  Message message;
  message.round = 7;
  loop.mailbox().post(Received{message, {}});
  loop.mailbox().close();
  loop.run();
  EXPECT_EQ(loop.protocol.heard,
            (std::vector<std::string>{"started", "received 7", "finished 1", "finished 2"}));
}

TEST(HostLoopThreads, PutsAPayloadWhereTheProtocolSaysItBelongs) {
  LoopOfOne* self = nullptr;
  std::vector<float> seen;
  LoopOfOne loop([&](const Event& /*event*/, Effects& /*effects*/) {
    seen.assign(self->parameters().begin() + 2, self->parameters().begin() + 4);
  });
  self = &loop;
  Message message;
  message.kind = MessageKind::kParameters;
  loop.mailbox().post(Received{message, Payload::owning(std::vector{5.0F, 6.0F})});
  loop.mailbox().close();
  loop.run();
  EXPECT_EQ(seen, (std::vector{5.0F, 6.0F})) << "before the protocol gets the event";
}

TEST(HostLoopThreads, ACopyIsFreeOfWhatComesLaterAndALoanIsNot) {
  LoopOfOne* self = nullptr;
  Payload copied;
  Payload borrowed;
  LoopOfOne loop([&](const Event& event, Effects& effects) {
    if (std::holds_alternative<Started>(event)) {
      const BufferRange all{Buffer::kParameters, {0, LoopOfOne::kSize}};
      copied = effects.copy(NodeId(0), all);
      borrowed = effects.borrow(NodeId(0), all);
      effects.start(self->update(1));
    }
  });
  self = &loop;
  const float before = loop.parameters()[0];
  loop.mailbox().post(Started{NodeId(0)});
  loop.mailbox().close();
  loop.run();
  EXPECT_EQ(copied.values()[0], before);
  EXPECT_EQ(borrowed.values()[0], before - 1);
}

// Whichever thread does it, all work is done, and in order on each thread.
TEST(HostLoopThreads, EndsWhenAllWorkIsDone) {
  for (const auto& offloading : {std::optional<Offloading>(), std::optional(kEverything),
                                 std::optional(kInParts), std::optional(kNothing)}) {
    LoopOfOne* self = nullptr;
    LoopOfOne loop(
        [&](const Event& event, Effects& effects) {
          const auto* finished = std::get_if<Finished>(&event);
          if (finished == nullptr || finished->work.round < 50) {
            const auto round = finished == nullptr ? 0 : finished->work.round;
            effects.start(self->update(static_cast<std::uint16_t>(round + 1)));
          }
        },
        offloading);
    self = &loop;
    const float before = loop.parameters()[0];
    loop.mailbox().post(Started{NodeId(0)});
    loop.mailbox().close();
    loop.run();
    EXPECT_EQ(loop.protocol.heard.size(), 51U);
    EXPECT_EQ(loop.protocol.heard.back(), "finished 50");
    EXPECT_LT(loop.parameters()[0], before - 50);
  }
}

TEST(HostLoopThreads, WhatWorkThrowsEndsALoopThatSleeps) {
  for (const auto& offloading :
       {std::optional<Offloading>(), std::optional(kEverything), std::optional(kInParts)}) {
    LoopOfOne* self = nullptr;
    LoopOfOne loop([&](const Event& /*event*/,
                       Effects& effects) { effects.start(self->update(1, LoopOfOne::kSize - 1)); },
                   offloading);
    self = &loop;
    loop.mailbox().post(Started{NodeId(0)});
    EXPECT_THROW(loop.run(), InvariantError);
  }
}

// ---- the threads driver, with the updates that MPI would offload --------------------------------

const UpdateRule kSteps{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
// Long enough for one thread to be in the middle while the other begins.
const std::vector<std::int64_t> kLong{30'000, 7, 20'000};

std::vector<float> trained(const Strategy& strategy, const std::optional<Offloading>& offloading) {
  const auto learners = toy_learners(kLong, 3);
  Job job = testing::job_for(learners, Topology(3, 1, 0), strategy);
  job.server_threads = offloading ? offloading->threads : 1;
  job.link.reduce_ns_per_byte = 1e6;  // servers begin their sums as soon as they can
  const Assembly assembly = assemble(job);
  TrainingState state = testing::state_for(learners, assembly, kSteps);
  testing::run_phase(assembly, state, 5, nullptr, offloading);
  const auto values = learners.front()->parameters();
  return {values.begin(), values.end()};
}

TEST(HostLoopThreads, NobodyReadsWhatIsBeingUpdatedAside) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    Strategy strategy = testing::talkative(preset.strategy);
    strategy.slice_params = 8'000;
    strategy.staleness = 1;
    const auto aside = trained(strategy, kEverything);
    const auto in_parts = trained(strategy, kInParts);
    if (strategy.algorithm == Algorithm::kBsp || strategy.algorithm == Algorithm::kPipe) {
      const auto alone = trained(strategy, std::nullopt);
      EXPECT_EQ(aside, alone);
      EXPECT_EQ(in_parts, alone);
    }
  }
}

// Packing and unpacking too, with what they keep for the next iteration: slices of a layer at a
// time and parts of a slice give the bits of one thread.
TEST(HostLoopThreads, PacksAsideWithTheBitsOfTheLoop) {
  for (const std::string_view preset : {"p3", "wfbp", "bsp+dgc", "ar-sgd+dgc"}) {
    const Strategy plain = testing::talkative(find_preset(preset)->strategy);
    for (const CodecTraits& codec : kCodecs) {
      if (plain.coded() ? codec.value != plain.codec : codec.kind != CodecKind::kDense) {
        continue;
      }
      SCOPED_TRACE(std::string(preset) + " " + std::string(codec.name));
      Strategy strategy = plain;
      strategy.codec = codec.value;
      strategy.error_feedback = codec.kind == CodecKind::kDense;
      strategy.partition = Partition::kSlice;
      strategy.slice_params = 8'000;
      strategy.segment_params = 1'500;
      const auto alone = trained(strategy, std::nullopt);
      EXPECT_EQ(trained(strategy, kEverything), alone);
      EXPECT_EQ(trained(strategy, kInParts), alone);
    }
  }
}

// The code of a packed gradient comes back with the report, also from other threads.
TEST(HostLoopThreads, TheOutputOfWorkAsideComesBackWithIt) {
  for (const auto& offloading :
       {std::optional<Offloading>(), std::optional(kEverything), std::optional(kInParts)}) {
    LoopOfOne* self = nullptr;
    std::vector<Bytes> outputs;
    LoopOfOne loop(
        [&](const Event& event, Effects& effects) {
          if (const auto* finished = std::get_if<Finished>(&event)) {
            outputs.push_back(finished->output.size());
          } else {
            Work pack = self->update(1);
            pack.kind = WorkKind::kEncode;
            pack.sources.clear();
            effects.start(std::move(pack));
          }
        },
        offloading, Codec::kQuantise8);
    self = &loop;
    loop.mailbox().post(Started{NodeId(0)});
    loop.mailbox().close();
    loop.run();
    EXPECT_EQ(outputs, (std::vector<Bytes>{4 + LoopOfOne::kSize}));
  }
}

TEST(OffloadingTest, OnlyLongWorkIsSpreadOverThreads) {
  const Offloading four{.threads = 4, .min_part = 100};
  EXPECT_EQ(four.parts_of(99), 1);
  EXPECT_EQ(four.parts_of(399), 3);
  EXPECT_EQ(four.parts_of(4'000), 4);
  EXPECT_EQ(Offloading{}.parts_of(1 << 30), 1);
}

}  // namespace
}  // namespace sluice
