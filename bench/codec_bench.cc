// The codecs against the limits of memory: each kernel beside a copy that moves the same number of
// bytes (read and written together) in the same run, and exact selection beside nth_element over
// all values.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "codecs/bits.h"
#include "codecs/deep_gradient.h"
#include "codecs/dense.h"
#include "codecs/error_feedback.h"
#include "codecs/sparse.h"
#include "codecs/top_k.h"

namespace sluice {
namespace {

constexpr std::size_t kValues = 25'000'000;
constexpr std::size_t kBytes = kValues * sizeof(float);
constexpr std::size_t kTop = kValues / 1000;
constexpr int kRepeats = 30;

// Gradient-like: many small values, few large ones.
std::vector<float> gradient() {
  Random random(1);
  std::vector<float> values(kValues);
  for (float& x : values) {
    const double u = random.uniform() * 2 - 1;
    x = static_cast<float>(std::pow(u, 9) * 1e-2);
  }
  return values;
}

// The minimum of several measurements of processor time: other load on the machine only adds to it.
class Fastest {
 public:
  template <class Body>
  void time(Body body) {
    const std::clock_t begin = std::clock();
    body();
    benchmark::ClobberMemory();
    const auto ticks = static_cast<double>(std::clock() - begin);
    seconds_ = std::min(seconds_, ticks / CLOCKS_PER_SEC);
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

// Sums whole words in independent lanes, at the speed of memory.
std::uint64_t read_all(std::span<const std::byte> bytes) {
  constexpr std::size_t kLanes = 8;
  std::array<std::uint64_t, kLanes> lanes{};
  const std::size_t words = bytes.size() / sizeof(std::uint64_t);
  for (std::size_t i = 0; i + kLanes <= words; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += load<std::uint64_t>(bytes.data(), i + lane);
    }
  }
  return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0});
}

// Runs `kernel` beside the bare traffic of the same number of bytes: a copy of what is both read
// and written, and a read or a fill of the rest.
template <class Kernel>
void beside_traffic(benchmark::State& state, std::size_t read, std::size_t written, Kernel kernel) {
  const std::vector<std::byte> from(read, std::byte{1});
  std::vector<std::byte> to(written);
  const std::size_t copied = std::min(read, written);
  Fastest bare;
  Fastest own;
  for (auto _ : state) {
    bare.time([&] {
      std::memcpy(to.data(), from.data(), copied);
      std::memset(to.data() + copied, 1, written - copied);
      benchmark::DoNotOptimize(read_all(std::span(from).subspan(copied)));
    });
    own.time(kernel);
  }
  state.counters["GB/s"] = static_cast<double>(read + written) * 1e-9 / own.seconds();
  state.counters["share"] = bare.seconds() / own.seconds();
}

struct Coded {
  explicit Coded(Codec format)
      : codec(make_dense_codec(format)),
        values(gradient()),
        bytes(static_cast<std::size_t>(codec->encoded_size(kValues))) {
    codec->encode(values, bytes);
  }

  std::unique_ptr<DenseCodec> codec;
  std::vector<float> values;
  std::vector<std::byte> bytes;
};

bool has_range(Codec format) { return traits_of(format).header_bytes > 0; }

void encode(benchmark::State& state, Codec format) {
  Coded coded(format);
  const std::size_t passes = has_range(format) ? 2 : 1;  // the first finds it
  beside_traffic(state, passes * kBytes, coded.bytes.size(),
                 [&] { coded.codec->encode(coded.values, coded.bytes); });
}

void decode(benchmark::State& state, Codec format) {
  Coded coded(format);
  beside_traffic(state, coded.bytes.size(), kBytes,
                 [&] { coded.codec->decode(coded.bytes, coded.values); });
}

void add(benchmark::State& state, Codec format) {
  Coded coded(format);
  beside_traffic(state, kBytes + coded.bytes.size(), kBytes,
                 [&] { coded.codec->add(coded.bytes, 1, coded.values); });
}

#define SLUICE_DENSE_BENCHMARK_OF(kernel, name, codec) \
  BENCHMARK_CAPTURE(kernel, name, codec)->Iterations(kRepeats)->Unit(benchmark::kMillisecond)
#define SLUICE_DENSE_BENCHMARK(kernel)                               \
  SLUICE_DENSE_BENCHMARK_OF(kernel, truncate16, Codec::kTruncate16); \
  SLUICE_DENSE_BENCHMARK_OF(kernel, bf16, Codec::kBf16);             \
  SLUICE_DENSE_BENCHMARK_OF(kernel, quantise8, Codec::kQuantise8);   \
  SLUICE_DENSE_BENCHMARK_OF(kernel, quantise4, Codec::kQuantise4);   \
  SLUICE_DENSE_BENCHMARK_OF(kernel, quantise2, Codec::kQuantise2)
SLUICE_DENSE_BENCHMARK(encode);
SLUICE_DENSE_BENCHMARK(decode);
SLUICE_DENSE_BENCHMARK(add);

void feed_back_error(benchmark::State& state, Codec format) {
  Coded coded(format);
  std::vector<float> residual(kValues);
  const ErrorFeedback feedback(*coded.codec, residual);
  const std::size_t passes = has_range(format) ? 5 : 4;
  beside_traffic(state, passes * kBytes + coded.bytes.size(), 2 * kBytes + coded.bytes.size(),
                 [&] { feedback.encode(coded.values, coded.bytes); });
}
SLUICE_DENSE_BENCHMARK(feed_back_error);

// The sum of four workers' selections of 0.1 %, all of different values; other memory is not read.
void sum_of_sparse(benchmark::State& state) {
  constexpr std::size_t kWorkers = 4;
  const std::vector<float> values = gradient();
  std::vector<std::vector<std::byte>> coded;
  std::vector<SparseView> parts;
  for (std::size_t w = 0; w < kWorkers; ++w) {
    std::vector<std::uint32_t> positions;
    for (std::size_t i = w; i < kValues; i += kValues / kTop) {
      positions.push_back(static_cast<std::uint32_t>(i));
    }
    coded.push_back(encode_sparse(values, positions));
  }
  for (const auto& bytes : coded) {
    parts.push_back(*SparseView::parse(bytes, kValues));
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(sum_sparse(parts));
  }
  state.counters["entries/s"] = benchmark::Counter(static_cast<double>(kWorkers * kTop),
                                                   benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(sum_of_sparse)->Unit(benchmark::kMillisecond);

// Reads gradient, velocity and residual, writes the last two, and reads the residual to select.
void deep_gradient(benchmark::State& state) {
  const std::vector<float> values = gradient();
  DeepGradient codec({.clipping = false, .warm_up = false}, {.momentum = 0.9F}, {{0, kValues}});
  beside_traffic(state, 4 * kBytes, 2 * kBytes, [&] {
    benchmark::DoNotOptimize(codec.encode(values, {}, {0, kValues}, 1));
  });
}
BENCHMARK(deep_gradient)->Iterations(kRepeats)->Unit(benchmark::kMillisecond);

void exact_top_k(benchmark::State& state) {
  const std::vector<float> values = gradient();
  std::vector<float> magnitudes(kValues);
  Fastest all;
  Fastest own;
  for (auto _ : state) {
    all.time([&] {
      std::ranges::transform(values, magnitudes.begin(), [](float x) { return std::fabs(x); });
      std::nth_element(magnitudes.begin(), magnitudes.begin() + kTop, magnitudes.end(),
                       std::greater<>());
    });
    own.time([&] { benchmark::DoNotOptimize(top_k(values, kTop)); });
  }
  state.counters["top_k_ms"] = own.seconds() * 1e3;
  state.counters["nth_element_ms"] = all.seconds() * 1e3;
  state.counters["ratio"] = all.seconds() / own.seconds();
}
BENCHMARK(exact_top_k)->Iterations(kRepeats)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice
