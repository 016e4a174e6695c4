// Local steps of a program that runs alone: the thread that takes them, and those that carry out
// the exchange.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "exchange/gradient_exchange.h"
#include "nodes/presets.h"

namespace sluice {
namespace {

using ::testing::Each;

constexpr float kFirst = 1;
constexpr float kStep = 0.5;  // by which each local step lowers all parameters

GradientExchange::Options options_of(const Cadence& cadence) {
  Strategy strategy = find_preset("diloco")->strategy;
  strategy.cadence = cadence;
  return {.preset = "diloco", .strategy = strategy, .begin_with = [](std::span<float> parameters) {
            std::ranges::fill(parameters, kFirst);
          }};
}

// A program with two layers, of equal values throughout.
class Program {
 public:
  Program(Participant& participant, const Cadence& cadence)
      : exchange_(participant, options_of(cadence), {"first", "second"}, {3, 2}) {}

  GradientExchange& exchange() { return exchange_; }
  std::vector<float>& own() { return own_; }

  void step() {
    take_over();
    for (float& value : own_) {
      value -= kStep;
    }
    for (std::size_t layer = 2; layer-- > 0;) {
      exchange_.wait(layer);
      if (exchange_.gives(layer)) {
        std::ranges::copy(part(own_, layer), part(exchange_.parameters(), layer).begin());
      }
      exchange_.gradient_ready(layer);
    }
    exchange_.end_step();
  }
  void take_over() {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      exchange_.wait(layer);
      if (exchange_.takes_over(layer)) {
        std::ranges::copy(part(exchange_.parameters(), layer), part(own_, layer).begin());
      }
    }
  }

 private:
  static std::span<float> part(std::span<float> all, std::size_t layer) {
    return layer == 0 ? all.first(3) : all.last(2);
  }

  GradientExchange exchange_;
  std::vector<float> own_ = std::vector<float>(5, kFirst);
};

// With a step of plain descent, outer rate 1/2: half of what the local steps have done stays.
TEST(ExchangeThreads, LocalStepsMoveTheGlobalParameters) {
  const Cadence cadence{.every = 4, .outer = Outer::kMean, .rate = 0.5};
  Participant participant;
  Program program(participant, cadence);
  float global = kFirst;
  for (int step = 1; step <= 12; ++step) {
    program.step();
    program.take_over();
    if (step % 4 == 0) {
      global -= 0.5F * 4 * kStep;
      EXPECT_THAT(program.own(), Each(global));
    }
    const auto shown = program.exchange().global_parameters();
    EXPECT_THAT(std::vector<float>(shown.begin(), shown.end()), Each(global)) << step;
  }
}

// Stopped while an exchange waits for its outer step.
TEST(ExchangeThreads, LocalStepsGoOnWithWhatWasRemembered) {
  const Cadence cadence{.every = 4, .outer = Outer::kNesterov, .rate = 0.5, .delay = 2};
  Participant participant;
  Program calm(participant, cadence);
  std::map<std::string, std::vector<float>> kept;
  std::vector<float> own;
  for (int step = 1; step <= 12; ++step) {
    calm.step();
    calm.take_over();
    if (step == 5) {
      own = calm.own();
      for (const Remembered& remembered : calm.exchange().remembered()) {
        for (const auto part : remembered.parts) {
          auto& values = kept[remembered.name];
          values.insert(values.end(), part.begin(), part.end());
        }
      }
    }
  }
  Program again(participant, cadence);
  again.exchange().go_on_after(5, [&](std::span<const Remembered> all) {
    for (const Remembered& remembered : all) {
      auto from = kept.at(remembered.name).begin();
      for (const auto part : remembered.parts) {
        std::copy_n(from, part.size(), part.begin());
        from += static_cast<std::ptrdiff_t>(part.size());
      }
    }
  });
  again.own() = own;
  for (int step = 6; step <= 12; ++step) {
    again.step();
    again.take_over();
  }
  EXPECT_EQ(again.own(), calm.own());
  EXPECT_EQ(again.exchange().steps(), calm.exchange().steps());
  EXPECT_THROW(again.exchange().go_on_after(5, {}), std::invalid_argument) << "it has begun";
}

}  // namespace
}  // namespace sluice
