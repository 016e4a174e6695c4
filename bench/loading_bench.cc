// Loading of images: how many are decoded and augmented per second, and what loading ahead gains
// when a step computes as long as its batch takes to load. All in one run, as ratios to a worker
// that loads its own batches.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "data/image_folder.h"
#include "drivers/realtime/load_ahead.h"
#include "support/image_files.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kImages = 64;
constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kBatches = 16;

// Of ImageNet's usual size, and as hard to decode as a photograph.
std::string photograph(std::uint64_t seed) {
  constexpr unsigned kWidth = 500;
  constexpr unsigned kHeight = 375;
  Random random(seed);
  Bytes8 pixels;
  for (unsigned y = 0; y < kHeight; ++y) {
    for (unsigned x = 0; x < kWidth; ++x) {
      const double shade =
          110 + 70 * std::sin(x * 0.02 * static_cast<double>(1 + seed % 5)) * std::cos(y * 0.03);
      for (int c = 0; c < 3; ++c) {
        pixels.push_back(static_cast<std::uint8_t>(shade + 20 * c + 25 * random.uniform()));
      }
    }
  }
  return jpeg_file(kWidth, kHeight, pixels, {.quality = 90});
}

// A folder of photographs, removed at the end of the scope.
class Photographs {
 public:
  Photographs()
      : folder_(fs::temp_directory_path() / ("sluice-bench-" + std::to_string(getpid()))) {
    for (const char* part : {"train", "val"}) {
      fs::create_directories(folder_ / part / "all");
    }
    for (std::uint64_t i = 0; i < kImages; ++i) {
      std::ofstream(folder_ / "train/all" / (std::to_string(i) + ".jpg")) << photograph(i);
    }
    std::ofstream(folder_ / "val/all/0.jpg") << photograph(0);
  }
  ~Photographs() { fs::remove_all(folder_); }
  Photographs(const Photographs&) = delete;
  Photographs& operator=(const Photographs&) = delete;

  BatchSequence batches() const {
    auto split = find_images({folder_.string(), {3, 224, 224}});
    return batches_of(std::make_shared<const ImageSet>((*std::move(split)).train),
                      {.samples = kImages, .batch = kBatch}, 0);
  }

 private:
  fs::path folder_;
};

// Seconds for this number of steps. Each step gets its batch and then does as much work as loading
// it took, or none.
double seconds_of_steps(const BatchSequence& sequence, std::size_t loaders, bool computing) {
  AheadLoader loader(loaders);
  const auto stream = loader.open(sequence);
  Batch work;
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < kBatches; ++i) {
    benchmark::DoNotOptimize(stream->get(i).features.data());
    if (computing) {
      sequence.load(i, work);
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void load(benchmark::State& state, bool computing) {
  const Photographs photographs;
  const BatchSequence sequence = photographs.batches();
  const auto loaders = static_cast<std::size_t>(state.range(0));
  double own = 0;
  double ahead = 0;
  for (auto _ : state) {
    own += seconds_of_steps(sequence, 0, computing);
    ahead += seconds_of_steps(sequence, loaders, computing);
  }
  const auto images = static_cast<double>(state.iterations() * kBatches * kBatch);
  state.counters["images_per_s"] = images / ahead;
  state.counters["gain"] = own / ahead;
}

BENCHMARK_CAPTURE(load, alone, false)->Arg(1)->Arg(2)->Iterations(2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load, beside_compute, true)
    ->Arg(1)
    ->Arg(2)
    ->Iterations(2)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice
