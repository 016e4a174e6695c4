// Factors by LibTorch's operators beside those of the host; here the device is the host, too.
#include "torch/device_factors.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "nodes/presets.h"
#include "state/factor_coder.h"
#include "state/learners_factors.h"
#include "support/matrices.h"
#include "torch/device_packing.h"
#include "torch/flat_parameters.h"

namespace sluice {
namespace {

using Values = std::vector<float>;

Strategy factored_strategy(std::int64_t rank, double decay) {
  Strategy strategy = find_preset("powersgd")->strategy;
  strategy.power_rank = rank;
  strategy.feedback_decay = decay;
  strategy.join_params = 40;
  return strategy;
}

std::vector<Layer> layers_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> names;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    names.push_back(std::to_string(l));
  }
  return testing::with_matrices(lay_out(names, sizes));
}

std::span<float> part(std::span<float> of, const Range& range) {
  return of.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

// A worker whose factors are made on its device.
struct DeviceWorker {
  DeviceWorker(const Strategy& strategy, const ChunkMap& chunks, std::size_t workers,
               const std::vector<Layer>& layers)
      : gradients(at::zeros({layers.back().range.end}, at::kFloat)),
        host(gradients.clone()),
        factors(strategy, chunks, workers, layers, gradients),
        left_to_host(strategy, layers, [this](std::span<const Range> matrices) {
          factors.find_right_factors(matrices, host);
        }) {}

  at::Tensor gradients;  // on the device
  at::Tensor host;
  DeviceFactors factors;
  LearnersFactors left_to_host;
};

// What all add up to takes the place of each.
void sum_up(std::vector<std::unique_ptr<DeviceWorker>>& workers, const Range& range) {
  Values sum(static_cast<std::size_t>(range.size()));
  for (const auto& worker : workers) {
    const std::span<float> own = part(span_of(worker->host), range);
    std::ranges::transform(sum, own, sum.begin(), std::plus());
  }
  for (const auto& worker : workers) {
    std::ranges::copy(sum, part(span_of(worker->host), range).begin());
  }
}

// Numbers from `first` up to `last` in groups, which follow each other.
template <class Take>
void in_any_groups(std::size_t first, std::size_t last, Take take) {
  while (first < last) {
    const auto end = *rc::gen::inRange(first + 1, last + 1);
    take(first, end);
    first = end;
  }
}

struct Run {
  Strategy strategy;
  std::vector<Layer> layers;
  ChunkMap chunks;
  std::vector<Work> matrices;
};

Run any_run() {
  const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::oneOf(rc::gen::just<std::int64_t>(400), rc::gen::inRange<std::int64_t>(1, 700))));
  const Strategy strategy =
      factored_strategy(*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::element(0.5, 1.0));
  const std::vector<Layer> layers = layers_of(sizes);
  Run run{strategy, layers, make_chunks(layers, 1, strategy), {}};
  for (const Layer& layer : layers) {
    if (strategy.factors(layer.matrix)) {
      Work& work = run.matrices.emplace_back();
      work.range = layer.matrix.range();
    }
  }
  return run;
}

// The same on the host, of one worker.
void do_work(FactorCoder& coder, Work work, WorkKind kind, Values& gradients) {
  work.kind = kind;
  WorkInParts doing{.work = work, .parts = coder.cut(work, 1)};
  do {
    coder.do_part(doing, 0, part(gradients, work.range));
  } while (FactorCoder::more(doing));
}

// The sum of the gradients, as the host finds it.
Values sum_on_hosts(const Run& run, std::vector<FactorCoder>& coders, std::vector<Values> each) {
  const auto sum_of = [&](const Range& range) {
    Values sum(static_cast<std::size_t>(range.size()));
    for (Values& own : each) {
      std::ranges::transform(sum, part(own, range), sum.begin(), std::plus());
    }
    for (Values& own : each) {
      std::ranges::copy(sum, part(own, range).begin());
    }
  };
  for (const Chunk& chunk : run.chunks.all()) {
    if (chunk.factor == Factor::kNone) {
      sum_of(chunk.range);
    }
  }
  for (const auto& [kind, factor] : {std::pair(WorkKind::kLeftFactor, Factor::kLeft),
                                     std::pair(WorkKind::kRightFactor, Factor::kRight),
                                     std::pair(WorkKind::kFromFactors, Factor::kNone)}) {
    for (Work work : run.matrices) {
      work.workers = static_cast<std::uint32_t>(coders.size());
      for (std::size_t w = 0; w < coders.size(); ++w) {
        do_work(coders[w], work, kind, each[w]);
      }
    }
    for (const Chunk& chunk : run.chunks.all()) {
      if (factor != Factor::kNone && chunk.factor == factor) {
        sum_of(chunk.range);
      }
    }
  }
  return each.front();
}

// Sends, sums and takes back the gradients of all workers, each in groups of its own.
void exchange(const Run& run, std::vector<std::unique_ptr<DeviceWorker>>& workers) {
  const auto sum_all = [&](Factor factor) {
    for (const Chunk& chunk : run.chunks.all()) {
      if (chunk.factor == factor) {
        sum_up(workers, chunk.range);
      }
    }
  };
  for (const auto& worker : workers) {
    // Chunks of a matrix are final together.
    std::vector<std::size_t> begins;
    for (std::size_t c = 0; c < run.chunks.size(); ++c) {
      const Factor factor = run.chunks[ChunkId(c)].factor;
      if (factor == Factor::kNone || factor == Factor::kLeft) {
        begins.push_back(c);
      }
    }
    begins.push_back(run.chunks.size());
    in_any_groups(0, begins.size() - 1, [&](std::size_t first, std::size_t end) {
      std::vector<std::size_t> chunks(begins[end] - begins[first]);
      std::iota(chunks.begin(), chunks.end(), begins[first]);
      worker->factors.send({}, chunks, worker->host, 1);
      worker->factors.deliver(worker->host);
    });
  }
  sum_all(Factor::kNone);
  sum_all(Factor::kLeft);
  for (const auto& worker : workers) {
    in_any_groups(0, run.matrices.size(), [&](std::size_t first, std::size_t end) {
      worker->left_to_host.find_right(std::span(run.matrices).subspan(first, end - first),
                                      span_of(worker->host));
    });
  }
  sum_all(Factor::kRight);
  for (const auto& worker : workers) {
    for (const Work& work : run.matrices) {
      worker->left_to_host.keep_right(work, part(span_of(worker->host), work.range));
    }
    in_any_groups(0, run.chunks.size(), [&](std::size_t first, std::size_t end) {
      worker->factors.take_back(first, end, worker->host);
    });
  }
}

double largest_difference_of(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

RC_GTEST_PROP(DeviceFactorsTest, SumsAreThoseOfHostsAndTheSameBitsOnAllWorkers, ()) {
  const Run run = any_run();
  const auto count = *rc::gen::inRange<std::size_t>(1, 4);
  std::vector<std::unique_ptr<DeviceWorker>> workers;
  std::vector<FactorCoder> coders;
  for (std::size_t w = 0; w < count; ++w) {
    workers.push_back(std::make_unique<DeviceWorker>(run.strategy, run.chunks, count, run.layers));
    coders.emplace_back(run.strategy, run.layers);
  }
  for (int step = 0; step < 3; ++step) {
    std::vector<Values> each;
    for (const auto& worker : workers) {
      Random random(*rc::gen::arbitrary<std::uint64_t>());
      std::ranges::generate(span_of(worker->gradients),
                            [&] { return static_cast<float>(random.uniform() - 0.5); });
      const std::span<float> own = span_of(worker->gradients);
      each.emplace_back(own.begin(), own.end());
    }
    exchange(run, workers);
    const Values expected = sum_on_hosts(run, coders, each);
    for (std::size_t w = 0; w < count; ++w) {
      const DeviceWorker& worker = *workers[w];
      RC_ASSERT(largest_difference_of(expected, span_of(worker.gradients)) < 1e-4);
      RC_ASSERT(worker.gradients.equal(workers.front()->gradients));
      const auto residual = coders[w].remembered().front().parts.front();
      RC_ASSERT(largest_difference_of(residual, span_of(worker.factors.state().front())) < 1e-4);
    }
  }
}

TEST(DeviceFactorsTest, TellsWhoseGradientIsNotFinite) {
  const std::vector<Layer> layers = layers_of({400, 20, 400});
  const Strategy strategy = factored_strategy(2, 1);
  const ChunkMap chunks = make_chunks(layers, 1, strategy);
  std::vector<std::size_t> all(chunks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t bad = 0; bad < layers.size(); ++bad) {
    for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      DeviceWorker worker(strategy, chunks, 1, layers);
      span_of(worker.gradients)[static_cast<std::size_t>(layers[bad].range.begin + 9)] = value;
      worker.factors.send({}, all, worker.host, 1);
      worker.factors.deliver(worker.host);
      for (std::size_t l = 0; l < layers.size(); ++l) {
        EXPECT_EQ(worker.factors.is_finite(layers[l].range), l != bad);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
