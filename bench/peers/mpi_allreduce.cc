// Replays a profile on plain MPI_Allreduce, as `sluice train --model replay:` does, and sums the
// gradients over all ranks, each layer as soon as it is ready, or all at the end.
//
//   mpirun ... sluice_peer_mpi PROFILE TIME_SCALE PARAM_SCALE ITERATIONS layer|whole
//
// Rank 0 prints JSON: the mean time of an iteration in microseconds, without the first half of
// them.

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "formats/profile.h"

namespace {

using Clock = std::chrono::steady_clock;
using sluice::Duration;

void sum_over_ranks(std::span<float> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
}

class Replay {
 public:
  Replay(sluice::Profile profile, bool by_layer)
      : profile_(std::move(profile)),
        layers_(profile_.layout()),
        gradients_(static_cast<std::size_t>(sluice::total_params(layers_))),
        by_layer_(by_layer) {}

  void iterate() {
    busy_until_ = Clock::now();
    compute(profile_.forward());
    // One thread makes all sums, in the order of the gradients.
    std::vector<std::promise<void>> ready(layers_.size());
    std::thread communication([&] { communicate(ready); });
    for (std::size_t l = layers_.size(); l-- > 0;) {
      compute(profile_.layers[l].backward);
      ready[l].set_value();
    }
    communication.join();
  }

 private:
  void compute(Duration time) {
    busy_until_ += std::chrono::duration_cast<Clock::duration>(time);
    std::this_thread::sleep_until(busy_until_);
  }

  void communicate(std::vector<std::promise<void>>& ready) {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      ready[l].get_future().wait();
      const sluice::Range range = layers_[l].range;
      if (by_layer_ && !range.empty()) {
        sum_over_ranks(std::span(gradients_)
                           .subspan(static_cast<std::size_t>(range.begin),
                                    static_cast<std::size_t>(range.size())));
      }
    }
    if (!by_layer_) {
      sum_over_ranks(gradients_);
    }
  }

  sluice::Profile profile_;
  std::vector<sluice::Layer> layers_;
  std::vector<float> gradients_;
  bool by_layer_;
  Clock::time_point busy_until_;
};

}  // namespace

int main(int argc, char** argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
  const auto read = argc == 6 ? sluice::read_profile(argv[1])
                              : sluice::Error("expected five arguments; see the source");
  if (!read || given < MPI_THREAD_SERIALIZED) {
    std::fprintf(stderr, "sluice_peer_mpi: %s\n",
                 read ? "this MPI has no MPI_THREAD_SERIALIZED" : read.error().message().c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Replay replay(sluice::scaled(*read, std::atof(argv[2]), std::atof(argv[3])),
                argv[5] == std::string("layer"));
  const int iterations = std::atoi(argv[4]);
  auto half = Clock::now();
  for (int i = 0; i < iterations; ++i) {
    if (i == iterations / 2) {
      half = Clock::now();
    }
    replay.iterate();
  }
  const std::chrono::duration<double, std::micro> second_half = Clock::now() - half;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::printf("{\"iteration_us\": %.1f}\n", second_half.count() / (iterations - iterations / 2));
  }
  MPI_Finalize();
}
