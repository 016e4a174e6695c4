// The codecs against what memory allows: each kernel beside a copy that moves as many bytes (read
// and written together) in the same run, and exact selection beside nth_element over all values.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"
#include "codecs/deep_gradient.h"
#include "codecs/dense.h"
#include "codecs/error_feedback.h"
#include "codecs/sparse.h"
#include "codecs/top_k.h"

namespace sluice {
namespace {

constexpr std::size_t kValues = 25'000'000;
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

// The least of several times of the processor: what else runs on the machine only adds to it.
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

// Runs `kernel`, which reads and writes `bytes` in all, beside a copy of as many.
template <class Kernel>
void beside_copy(benchmark::State& state, std::size_t bytes, Kernel kernel) {
  const std::vector<std::byte> from(bytes / 2, std::byte{1});
  std::vector<std::byte> to(bytes / 2);
  Fastest copy;
  Fastest own;
  for (auto _ : state) {
    copy.time([&] { std::memcpy(to.data(), from.data(), from.size()); });
    own.time(kernel);
  }
  const auto rate = [&](const Fastest& fastest) {
    return static_cast<double>(bytes) * 1e-9 / fastest.seconds();
  };
  state.counters["GB/s"] = rate(own);
  state.counters["copy_GB/s"] = rate(copy);
  state.counters["share"] = rate(own) / rate(copy);
}

struct Coded {
  explicit Coded(DenseFormat format)
      : codec(make_dense_codec(format)),
        values(gradient()),
        bytes(static_cast<std::size_t>(codec->encoded_size(kValues))) {
    codec->encode(values, bytes);
  }

  std::unique_ptr<DenseCodec> codec;
  std::vector<float> values;
  std::vector<std::byte> bytes;
};

// The slices of P3 are coded one by one, and stay in the cache between two passes.
constexpr std::size_t kSlice = 50'000;

void encode(benchmark::State& state, DenseFormat format) {
  Coded coded(format);
  beside_copy(state, kValues * sizeof(float) + coded.bytes.size(), [&] {
    const auto size = static_cast<std::size_t>(coded.codec->encoded_size(kSlice));
    for (std::size_t begin = 0; begin < kValues; begin += kSlice) {
      coded.codec->encode(std::span(coded.values).subspan(begin, kSlice),
                          std::span(coded.bytes).first(size));
    }
  });
}

void encode_whole(benchmark::State& state, DenseFormat format) {
  Coded coded(format);
  const std::size_t passes = format == DenseFormat::kQuantise8 ? 2 : 1;
  beside_copy(state, passes * kValues * sizeof(float) + coded.bytes.size(),
              [&] { coded.codec->encode(coded.values, coded.bytes); });
}

void decode(benchmark::State& state, DenseFormat format) {
  Coded coded(format);
  beside_copy(state, kValues * sizeof(float) + coded.bytes.size(),
              [&] { coded.codec->decode(coded.bytes, coded.values); });
}

void add(benchmark::State& state, DenseFormat format) {
  Coded coded(format);
  beside_copy(state, 2 * kValues * sizeof(float) + coded.bytes.size(),
              [&] { coded.codec->add(coded.bytes, 1, coded.values); });
}

#define SLUICE_DENSE_BENCHMARK(kernel)                                                           \
  BENCHMARK_CAPTURE(kernel, truncate16, DenseFormat::kTruncate16)                                \
      ->Iterations(kRepeats)                                                                     \
      ->Unit(benchmark::kMillisecond);                                                           \
  BENCHMARK_CAPTURE(kernel, quantise8, DenseFormat::kQuantise8)                                  \
      ->Iterations(kRepeats)                                                                     \
      ->Unit(benchmark::kMillisecond)
SLUICE_DENSE_BENCHMARK(encode);
SLUICE_DENSE_BENCHMARK(encode_whole);
SLUICE_DENSE_BENCHMARK(decode);
SLUICE_DENSE_BENCHMARK(add);

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
