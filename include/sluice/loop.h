#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Sluice for a program with its own model, data and training loop. The program defines what one
// worker does; Sluice runs several workers and keeps their parameters in step:
//
//   sluice::LoopOptions options;
//   options.iterations = 500;
//   sluice::run_loops(options, [&](sluice::LoopWorker& worker) {
//     Net net;
//     worker.attach(*net, [&] { net->forward(torch::zeros({1, 784})); });
//     for (std::int64_t i = 0; i < options.iterations; ++i) {
//       const auto [samples, labels] = batch(i, worker.rank(), worker.workers());
//       worker.step([&] { return torch::cross_entropy_loss(net->forward(samples), labels); });
//     }
//   });
namespace sluice {

struct LoopOptions {
  std::string preset = "p3";  // `sluice presets` lists them; mg-wfbp is not for loops
  // Threads of this process. If mpirun or similar started the program, every process is one worker
  // instead, and this is ignored.
  std::size_t workers = 2;
  // Servers on hosts of their own, for presets with servers; 0: one beside every worker. If mpirun
  // or similar started the program, the last processes are these servers: there run_loops() runs no
  // loop and returns when the workers are done.
  std::size_t servers = 0;
  std::int64_t iterations = 1;  // steps that every worker takes

  // Parameters are updated by stochastic gradient descent.
  float learning_rate = 0.05F;
  float momentum = 0.9F;
  float weight_decay = 0;

  std::uint64_t seed = 1;  // of random choices in the strategy

  // A loss or gradient that is infinite or NaN ends the run before anybody learns from it; the
  // error names the rank, the iteration and the layer. If false, standard error gets a warning, one
  // per rank, and the run continues.
  bool stop_on_nonfinite = true;
  // SIGINT and SIGTERM stop all workers of all processes: see Stopped. A second signal ends the
  // process at once. If false, Sluice leaves signals to the program.
  bool stop_on_signal = true;
};

// A signal asked to stop. Workers finish the steps that they have begun, exchange them, and stop,
// those that wait for each other at the same iteration. The next call of step() throws this; a loop
// need not catch it. A loop that does may call wait(), read the final parameters and return.
class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("a signal stopped the run") {}
};

// A worker, as its loop sees it. All calls come from the thread that runs the loop.
class LoopWorker {
 public:
  using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~LoopWorker() = default;

  virtual std::size_t rank() const = 0;     // 0 ... workers()-1
  virtual std::size_t workers() const = 0;  // of all processes

  // Registers what is trained: once, before the first step. The workers must agree in names and
  // sizes. All begin with the values of worker 0. From then on only Sluice changes the parameters:
  // it owns their memory and their gradients. Parameters whose names agree up to the last dot form
  // a layer. Parameters without requires_grad are left alone, and so are buffers such as running
  // statistics, which each worker has for itself.
  //
  // `forward` makes one forward pass, on any sample, without gradients. Sluice records in which
  // order it reads the layers, since what is read first is exchanged first.
  virtual void attach(const NamedParameters& parameters, const std::function<void()>& forward) = 0;
  // The same for all parameters of a torch::nn module.
  template <class Module>
  void attach(const Module& module, const std::function<void()>& forward) {
    NamedParameters parameters;
    for (const auto& item : module.named_parameters()) {
      parameters.emplace_back(item.key(), item.value());
    }
    attach(parameters, forward);
  }

  // One iteration. `loss` makes the forward pass and returns the mean loss of this worker's batch,
  // a single number. It waits at each layer whose parameters have not arrived. The backward pass
  // follows, gradients leave while it runs, and the step ends with it. Returns the loss. Only
  // step() runs backward passes of the parameters: a call of backward() by the program, in `loss`
  // or elsewhere, throws std::logic_error while the run lasts. Throws Stopped if there are no more
  // steps because of a signal.
  virtual double step(const std::function<at::Tensor()>& loss) = 0;

  // Returns when all parameters have arrived. They do not change until the next step, and the
  // program may read them, to evaluate or to save them. Without wait() they may be in flight
  // between steps.
  virtual void wait() = 0;
};

// Runs the loop once for every worker of this process, each on a thread of its own, and returns
// when all are done. Throws the first failure, of a loop or of the exchange. With several
// processes, the one that fails prints the reason on standard error and ends all of them. May be
// called again after it has returned, but not by two threads at once.
//
// Returns 0, or the signal that asked to stop. The caller decides what follows; usually the program
// ends, with 128 + signal. Sluice handles signals from when all loops have attached until it
// returns. A program that handles SIGINT or SIGTERM itself gets its handlers back then. Signals
// that the process was started to ignore stay ignored.
//
// A program that was started by mpirun or similar may initialise MPI itself, before the first call,
// with MPI_THREAD_FUNNELED or higher. It then calls run_loops() on the thread that did so, and
// MPI_Finalize after the last call. Loops run on other threads: to use MPI in them, the program
// needs MPI_THREAD_MULTIPLE and a communicator of its own. If the program does not initialise MPI,
// the first call does, and MPI is finalised when the process exits successfully.
int run_loops(const LoopOptions& options, const std::function<void(LoopWorker&)>& loop);

}  // namespace sluice
