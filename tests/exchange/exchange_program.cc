// Exchanges gradients as a process of an MPI job: exchange_program CASE [PRESET [FOLDER]].

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "exchange/gradient_exchange.h"

namespace sluice {
namespace {

// What rank `rank` gives for value `i` in a step. Small whole numbers, so sums are exact.
float given(std::size_t rank, std::int64_t step, std::size_t i) {
  return static_cast<float>((rank + 1) * (static_cast<std::size_t>(step) % 7 + 1) + i % 5);
}

float expected(std::size_t size, std::int64_t step, std::size_t i) {
  float sum = 0;
  for (std::size_t r = 0; r < size; ++r) {
    sum += given(r, step, i);
  }
  return sum;
}

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::_Exit(1);
}

// Waits for it first.
void check_layer(GradientExchange& exchange, std::size_t layer, std::size_t size) {
  exchange.wait(layer);
  if (!exchange.is_here(layer)) {
    fail("a layer that was waited for is not here");
  }
  const Range range = exchange.layers()[layer].range;
  for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end);
       ++i) {
    const float found = exchange.gradients()[i];
    if (found != expected(size, exchange.steps() - 1, i)) {
      fail(fmt::format("step {}, value {}: {} instead of {}", exchange.steps(), i, found,
                       expected(size, exchange.steps() - 1, i)));
    }
  }
}

// One step: uses the sums of the last one, layer by layer, and gives the next gradients.
void take_step(GradientExchange& exchange, const Participant& self,
               const std::function<void()>& after_layer = {}) {
  const std::size_t layers = exchange.layers().size();
  for (std::size_t l = 0; exchange.steps() > 0 && l < layers; ++l) {
    exchange.enter(l);
    check_layer(exchange, l, self.size());
  }
  exchange.forward_done();
  for (std::size_t l = layers; l-- > 0;) {
    const Range range = exchange.layers()[l].range;
    for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end);
         ++i) {
      exchange.gradients()[i] = given(self.rank(), exchange.steps(), i);
    }
    exchange.gradient_ready(l);
    if (after_layer) {
      after_layer();
    }
  }
  exchange.end_step(static_cast<double>(self.rank()));
}

void check_collectives(Participant& self) {
  double sum = static_cast<double>(self.rank());
  self.all_reduce({&sum, 1, NumberType::kFloat64}, Reduction::kSum);
  const std::size_t last = self.size() - 1;
  std::vector<std::int64_t> values(1000, static_cast<std::int64_t>(self.rank()));
  self.broadcast(std::as_writable_bytes(std::span(values)), last);
  const std::string text = self.broadcast_text(std::string(self.rank() + 1, 'x'), last);
  const std::vector<std::string> all = self.all_gather(std::to_string(self.rank()));
  const bool right = sum == static_cast<double>(last * self.size()) / 2 &&
                     values.back() == static_cast<std::int64_t>(last) &&
                     text.size() == self.size() && all.size() == self.size() &&
                     all.back() == std::to_string(last);
  if (!right) {
    fail("a collective call gave a wrong result");
  }
}

// Two exchanges of different layers, one in the steps of the other, and collective calls anywhere.
void run_steps(Participant& self, const std::string& preset) {
  GradientExchange first(self, {.preset = preset}, {"a", "b", "c"}, {7, 100'001, 3});
  GradientExchange second(self, {.preset = preset}, {"d"}, {50});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 9; ++i) {
      take_step(first, self);
    }
    take_step(first, self, [&] { check_collectives(self); });
    check_collectives(self);
    for (std::size_t l = 0; l < 3; ++l) {
      check_layer(first, l, self.size());
    }
    if (round < 2) {
      take_step(second, self);
    }
  }
  take_step(first, self, [&, left = 1]() mutable {
    if (left-- > 0) {
      take_step(second, self);
    }
  });
  self.barrier();
  check_layer(second, 0, self.size());
  if (self.rank() == 0) {
    fmt::print("{} processes, {} and {} steps\n", self.size(), first.steps(), second.steps());
  }
}

// The last process has no data for the last 5 steps.
void run_join(Participant& self, const std::string& preset) {
  GradientExchange exchange(self, {.preset = preset}, {"a", "b"}, {7, 9});
  const bool joins = self.rank() == self.size() - 1;
  double sum = 0;
  std::string refused;
  for (int i = 0; i < 10; ++i) {
    if (joins && i == 5) {
      self.join();
    }
    take_step(exchange, self);
    if (!joins && i >= 5) {
      double one = 1;
      self.all_reduce({&one, 1, NumberType::kFloat64}, Reduction::kSum);
      sum += one;
      self.barrier();
    }
  }
  if (!joins) {
    try {
      self.all_gather("text");
    } catch (const std::exception& e) {
      refused = e.what();
    }
    self.join();
  }
  self.end_join();
  self.barrier();
  if (self.rank() == 0) {
    fmt::print("{} of {}; {}\n", sum, self.size(), refused);
  }
}

// The record has the mean loss of the ranks. A folder that is in use is refused in all processes.
void run_record(Participant& self, const std::string& preset, const std::string& folder) {
  const GradientExchange::Options options{.preset = preset,
                                          .record = {.run = folder, .trace = "auto", .batch = 4}};
  {
    GradientExchange exchange(self, options, {"a", "b", "c"}, {7, 100'001, 3});
    for (int i = 0; i < 12; ++i) {
      take_step(exchange, self);
    }
  }
  try {
    GradientExchange again(self, options, {"a"}, {7});
    fail("a folder in use was accepted");
  } catch (const std::invalid_argument& e) {
    if (self.rank() == self.size() - 1) {
      fmt::print("{}\n", e.what());
    }
  }
}

int run(const std::string& what, const std::string& preset, const std::string& folder) {
  Participant self;
  if (what == "steps") {
    run_steps(self, preset);
  } else if (what == "record") {
    run_record(self, preset, folder);
  } else if (what == "join") {
    run_join(self, preset);
  } else if (what == "differ") {
    try {
      self.rank() == 1 ? self.barrier() : check_collectives(self);
    } catch (const std::exception& e) {
      fmt::print("{}\n", e.what());
      self.abort(3);
    }
  } else if (what == "end-early") {
    GradientExchange exchange(self, {.preset = preset}, {"a", "b"}, {7, 9});
    for (int i = 0; i < (self.rank() == 1 ? 5 : 500); ++i) {
      take_step(exchange, self);
    }
    exchange.end();
  } else if (what == "abort") {
    GradientExchange exchange(self, {.preset = preset}, {"a", "b"}, {7, 9});
    for (int i = 0; i < 500; ++i) {
      if (self.rank() == 1 && i == 5) {
        self.abort(4);
      }
      take_step(exchange, self);
    }
  } else if (what == "unknown") {
    GradientExchange exchange(self, {.preset = preset}, {"a"}, {7});
  }
  self.leave();
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::run(argc > 1 ? argv[1] : "steps", argc > 2 ? argv[2] : "wfbp",
                       argc > 3 ? argv[3] : "");
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    std::_Exit(1);
  }
}
