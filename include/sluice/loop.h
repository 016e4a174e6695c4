#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// Sluice for a program with a model, data and a training loop of its own. The program says what one
// worker does; Sluice runs several of them and keeps their parameters in step:
//
//   sluice::LoopOptions options;
//   options.iterations = 500;
//   sluice::run_loops(options, [&](sluice::LoopWorker& worker) {
//     Net net;
//     worker.attach(*net, [&] { net->forward(torch::zeros({1, 784})); });
//     for (std::int64_t i = 0; i < options.iterations; ++i) {
//       const auto [samples, answers] = batch(i, worker.rank(), worker.workers());
//       worker.step([&] { return torch::cross_entropy_loss(net->forward(samples), answers); });
//     }
//   });
namespace sluice {

struct LoopOptions {
  std::string preset = "p3";  // `sluice presets` lists them; mg-wfbp is not for loops
  // Threads of this process. Where mpirun or its likes started the program, every process is one
  // worker instead, and this is not read.
  std::size_t workers = 2;
  std::int64_t iterations = 1;  // steps that every worker takes

  // Parameters are updated by stochastic gradient descent.
  float learning_rate = 0.05F;
  float momentum = 0.9F;
  float weight_decay = 0;

  std::uint64_t seed = 1;  // of the chances in the way to synchronise
};

// What a loop sees of Sluice. All calls come from the thread that runs the loop.
class LoopWorker {
 public:
  using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~LoopWorker() = default;

  virtual std::size_t rank() const = 0;     // 0 ... workers()-1
  virtual std::size_t workers() const = 0;  // of all processes

  // Tells what is trained, once, before the first step; the workers must agree in names and sizes.
  // All begin with the values of worker 0, and from now on only Sluice changes them: a parameter's
  // memory and its gradient belong to it. Parameters whose names agree up to the last dot form a
  // layer. Those that want no gradient are left alone, and so are buffers such as running
  // statistics: they are each worker's own.
  //
  // `forward` makes one forward pass, on any sample, without gradients: Sluice watches in which
  // order it reads the layers, for what is read first is exchanged first.
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
  // a single number; a layer whose parameters are still on their way holds it up when it comes to
  // it. The backward pass follows, gradients leave while it is in flight, and the step ends with
  // it. Returns the loss. Only step() runs backward passes of the parameters: a call of backward()
  // by the program, in `loss` or elsewhere, throws std::logic_error while the run lasts.
  virtual double step(const std::function<at::Tensor()>& loss) = 0;

  // Returns when all parameters are in; until the next step they stay as they are, and the program
  // may read them, to evaluate or to save them. Without it they may be on their way between steps.
  virtual void wait() = 0;
};

// Runs the loop once for every worker of this process, each on a thread of its own, and returns
// when all are done. The first failure, of a loop or of the exchange, is thrown here; where there
// are several processes, the one that fails says so on standard error and ends all of them. May be
// called again after it has returned.
//
// A program that was started by mpirun or its likes may initialise MPI itself, before the first
// call, with MPI_THREAD_FUNNELED or higher; it then calls run_loops() on the thread that did so,
// and MPI_Finalize after the last call. Loops run on other threads: to use MPI in them takes
// MPI_THREAD_MULTIPLE and a communicator of the program's own. If the program does not initialise
// MPI, the first call does, and MPI is finalised when the process exits successfully.
void run_loops(const LoopOptions& options, const std::function<void(LoopWorker&)>& loop);

}  // namespace sluice
