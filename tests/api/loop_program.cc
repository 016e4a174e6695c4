// Runs loops more than once as one process of an MPI job, for loop_mpi_test.cc:
//
//   loop_program RUNS [own]     own: the program itself initialises and finalises MPI
//
// Rank 0 prints the workers, and the loss of the last step of each run.

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <mpi.h>
#include <sluice/loop.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <string>

namespace {

constexpr std::int64_t kIterations = 5;

void run_once() {
  sluice::LoopOptions options;
  options.iterations = kIterations;
  options.momentum = 0;
  sluice::run_loops(options, [](sluice::LoopWorker& worker) {
    torch::nn::Linear net(3, 1);
    net->weight.data().fill_(1.0F);
    net->bias.data().fill_(0.0F);
    worker.attach(*net, [&] { net->forward(at::zeros({1, 3})); });
    double loss = 0;
    for (std::int64_t i = 0; i < kIterations; ++i) {
      loss = worker.step([&] { return net->forward(at::ones({1, 3})).square().mean(); });
    }
    if (worker.rank() == 0) {
      std::printf("%zu workers, loss %.3f\n", worker.workers(), loss);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bool own = argc > 2;
  int provided = MPI_THREAD_SINGLE;
  if (own) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  }
  for (int run = 0; run < std::stoi(argv[1]); ++run) {
    run_once();
  }
  if (own) {
    MPI_Finalize();
  }
  return 0;
}
