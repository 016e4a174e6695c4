// Runs loops more than once as one process of an MPI job, for loop_mpi_test.cc:
//
//   loop_program RUNS [own]     own: the program itself initialises and finalises MPI
//   loop_program stop           rank 1 gets SIGTERM in a run that has no end otherwise
//   loop_program serve          the last process is a server; it prints that it is done
//
// Rank 0 prints the workers, and the loss of the last step of each run. With `stop`, every rank
// prints the signal.

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <mpi.h>
#include <sluice/loop.h>
#include <torch/nn/modules/linear.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

namespace {

constexpr std::int64_t kIterations = 5;

int run_once(std::int64_t iterations, bool is_interrupted, std::size_t servers = 0) {
  sluice::LoopOptions options;
  options.servers = servers;
  options.iterations = iterations;
  options.momentum = 0;
  bool has_worker = false;
  const int signal = sluice::run_loops(options, [&](sluice::LoopWorker& worker) {
    has_worker = true;
    torch::nn::Linear net(3, 1);
    net->weight.data().fill_(1.0F);
    net->bias.data().fill_(0.0F);
    worker.attach(*net, [&] { net->forward(at::zeros({1, 3})); });
    double loss = 0;
    for (std::int64_t i = 0; i < iterations; ++i) {
      if (is_interrupted && worker.rank() == 1 && i == kIterations) {
        std::raise(SIGTERM);
      }
      loss = worker.step([&] { return net->forward(at::ones({1, 3})).square().mean(); });
    }
    if (worker.rank() == 0) {
      std::printf("%zu workers, loss %.3f\n", worker.workers(), loss);
    }
  });
  if (!has_worker) {
    std::puts("served");
  }
  return signal;
}

}  // namespace

int main(int argc, char** argv) {
  if (std::string(argv[1]) == "stop") {
    constexpr std::int64_t kEndless = 1'000'000'000;
    const int signal = run_once(kEndless, true);
    std::printf("stopped by %d\n", signal);
    return 0;
  }
  if (std::string(argv[1]) == "serve") {
    run_once(kIterations, false, 1);
    return 0;
  }
  const bool own = argc > 2;
  int provided = MPI_THREAD_SINGLE;
  if (own) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  }
  for (int run = 0; run < std::stoi(argv[1]); ++run) {
    run_once(kIterations, false);
  }
  if (own) {
    MPI_Finalize();
  }
  return 0;
}
