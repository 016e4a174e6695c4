#include "planner/processor_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/tuning.h"

namespace sluice {
namespace {

ProcessorSample sample(double messages, double length, const MessageCost& cost) {
  return {messages, messages * length,
          2 * from_ns(messages * (to_us(cost.startup) * 1e3 + length * cost.ns_per_byte))};
}

RC_GTEST_PROP(ProcessorCostTest, FindsWhatTheSamplesWereMadeWith, ()) {
  const MessageCost cost{from_us(*rc::gen::inRange(0, 400) / 8.0),
                         *rc::gen::inRange(1, 400) / 100.0};
  const MessageCost fit = fit_message_cost(std::vector{
      sample(1000, 57'344, cost), sample(300, 200'000, cost), sample(60, 1'048'576, cost)});
  RC_ASSERT(std::abs(to_us(fit.startup) - to_us(cost.startup)) < 1e-2);
  RC_ASSERT(std::abs(fit.ns_per_byte - cost.ns_per_byte) < 1e-4);
}

// A longer message that costs less is noise.
TEST(ProcessorCostTest, NeitherPartIsNegative) {
  const MessageCost fit =
      fit_message_cost(std::vector<ProcessorSample>{{1, 1000, from_us(10)}, {1, 2000, from_us(8)}});
  EXPECT_EQ(fit.ns_per_byte, 0);
  EXPECT_GT(fit.startup, Duration{0});
  const MessageCost bytes_only =
      fit_message_cost(std::vector<ProcessorSample>{{1, 1000, from_us(1)}, {1, 2000, from_us(20)}});
  EXPECT_EQ(bytes_only.startup, Duration{0});
  EXPECT_GT(bytes_only.ns_per_byte, 0);
}

// Runs nothing; uses a message's processor time as often as the engine would send one.
TEST(ProcessorCostTest, MeasuresTheMessagesOfTheEngine) {
  const MessageCost cost{from_us(7), 0.5};
  const ArithmeticCost arithmetic{0.125, 0.25, 0};
  Job job;
  job.topology = Topology(4, 1, 0);
  job.link.ns_per_byte = 8;
  job.strategy.peer_credit = 1'000'000'000;
  Duration used{0};
  const auto fit = measured_message_cost(
      job, arithmetic,
      [&](const Assembly& assembly, Iteration last, Observer& observer) {
        const auto chunks = static_cast<double>(assembly.chunks->size());
        const double bytes =
            static_cast<double>((*assembly.chunks)[ChunkId(0)].range.size() * kFloatBytes);
        EXPECT_LT(static_cast<double>(assembly.job.strategy.peer_credit), 4 * bytes)
            << "few are in flight, as in a run with servers";
        for (Iteration i = 0; i < last; ++i) {
          observer.computed(NodeId(0), LayerId(0), i, Pass::kForward, Time{0}, Time{0});
          used += sample(chunks * 1.5, bytes, cost).time;
          used += from_ns(chunks / 4 * bytes * (3 * 0.125 + 0.25));
        }
      },
      [&] { return used; });
  EXPECT_NEAR(to_us(fit.startup), 7, 0.1);
  EXPECT_NEAR(fit.ns_per_byte, 0.5, 0.01);
}

}  // namespace
}  // namespace sluice
