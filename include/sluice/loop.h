#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Sluice for a program with its own model, data, optimizer and training loop. Every process that
// mpirun, srun or `sluice launch` starts is one worker; started alone, the program trains by
// itself. The program's own thread takes the steps:
//
//   sluice::run_loop([&](sluice::LoopWorker& worker) {
//     Net net;
//     torch::optim::Adam adam(net->parameters(), 1e-3);
//     sluice::LoopModel& model =
//         worker.attach(*net, adam, [&] { net->forward(torch::zeros({1, 784})); });
//     while (!done) {
//       const auto [samples, labels] = next_batch(worker.rank(), worker.workers());
//       model.step([&] { return torch::cross_entropy_loss(net->forward(samples), labels); });
//     }
//     model.wait();
//   });
namespace sluice {

// How gradients travel. What is not set is the preset's.
struct LoopOptions {
  // One that sums gradients for the program's own optimizer; an error lists them. Or one of local
  // steps, such as "diloco": see LoopModel::step().
  std::string preset = "p3";
  // The axes, in the words of `sluice train`.
  std::optional<std::string> exchange = {};    // such as "allreduce"
  std::optional<std::string> partition = {};   // such as "layer"
  std::optional<std::string> order = {};       // such as "fifo"
  std::optional<std::string> codec = {};       // such as "bf16"
  std::optional<bool> error_feedback = {};     // what a codec loses goes into the next code
  std::optional<std::string> collective = {};  // such as "ring"
  std::optional<std::int64_t> slice = {};      // parameters, for partition slice

  // For a preset of local steps, as `sluice train` has them.
  std::optional<std::int64_t> every = {};        // local steps between two exchanges of a fragment
  std::optional<std::string> outer = {};         // the outer optimizer: "mean" or "nesterov"
  std::optional<double> outer_rate = {};         // its learning rate
  std::optional<double> outer_momentum = {};     // of outer "nesterov"
  std::optional<double> outer_pull = {};         // of exchange "gossip"
  std::optional<std::int64_t> outer_delay = {};  // local steps behind which an exchange runs
  std::optional<double> outer_mix = {};          // share of its own parameters that a worker keeps
  std::optional<std::int64_t> fragments = {};    // parts of the model that are exchanged in turn

  // The record of the run, as `sluice train` keeps it: a folder, new or empty, or "auto" for a new
  // one under runs/, and a file for a Chrome trace, or "auto" for one in the folder. Rank 0 writes
  // them when the loop ends; `sluice report` shows them. Empty: none.
  std::string run = {};
  std::string trace = {};
  std::int64_t batch = 0;  // samples per step of each worker, for the record; 0: not known

  // A gradient that is infinite or NaN ends the run before anybody learns from it; the error names
  // the rank, the step and the layer.
  bool stop_on_nonfinite = true;
};

// What this process has done so far.
struct LoopMetrics {
  std::int64_t steps = 0;
  std::int64_t waits = 0;  // for sums that were not here when they were needed
  double waited_seconds = 0;
};

// A model in training, as the loop of one worker sees it. All calls come from one thread.
class LoopModel {
 public:
  using Loss = std::function<at::Tensor()>;
  // The gradients of a layer, in the order of its parameters; undefined where there is none.
  using OnGradients =
      std::function<void(const std::string& layer, const std::vector<at::Tensor>& gradients)>;

  virtual ~LoopModel() = default;

  // One step. `loss` makes the forward pass and returns the mean loss of this worker's batch, a
  // single number. Each layer is updated by the optimizer when the pass first reads it: it waits
  // for the sum of its gradients and no other. The backward pass follows, gradients leave while it
  // runs, and the step ends with it. Returns the loss. What the passes do not reach has gradient 0.
  //
  // The optimizer gets the mean gradient over all workers and, whenever it is called, the
  // hyper-parameters that it had when the step ended. The program may change them between steps. It
  // does not call step() of the optimizer, and zero_grad() has no effect.
  //
  // With a preset of local steps the optimizer gets the gradient of this worker, when the step
  // ends. After every so many steps the workers exchange how far these have led, move the global
  // parameters, and go on from there. The state of the optimizer stays in its worker. All workers
  // take the same number of steps.
  virtual double step(const Loss& loss) = 0;
  // A pass whose gradients are added to those of the next step, without an exchange. As in a loop
  // of PyTorch, the program divides the loss of each micro-batch by their number.
  virtual double accumulate(const Loss& loss) = 0;

  // Called for each layer between its backward pass and its departure, in a step. It may change the
  // gradients in place.
  virtual void on_gradients(OnGradients call) = 0;

  // Returns when all sums are here and all parameters are up to date. The program may read or write
  // them until the next step, to evaluate or to save the model. Without wait(), layers may be
  // behind between steps.
  virtual void wait() = 0;
  // Calls wait(), then `use`, and meanwhile the model has the global parameters, which all workers
  // have in common: to evaluate or to save it. Without local steps the model has them anyway. With
  // exchange "gossip" each worker has its own.
  virtual void with_global_parameters(const std::function<void()>& use) = 0;

  virtual LoopMetrics metrics() const = 0;
};

// This process among those of the job. Calls that say "collective" are made by all processes in the
// same order, between two steps.
class LoopWorker {
 public:
  using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~LoopWorker() = default;

  virtual std::size_t rank() const = 0;  // 0 ... workers()-1
  virtual std::size_t workers() const = 0;
  virtual std::size_t local_rank() const = 0;  // among those of this machine, to choose a GPU

  // Collective. Registers what is trained; the model lives until the loop ends. The workers must
  // agree in names and sizes, and all begin with the values of rank 0. Parameters whose names agree
  // up to the last dot form a layer. Those without requires_grad are left alone, and so are buffers
  // such as running statistics, which each worker has for itself. Parameters are floats, in host
  // memory or on a GPU. `optimizer` has these parameters and no others that require a gradient; it
  // must live as long as steps are taken. LBFGS, which makes passes of its own, does not work.
  //
  // `forward` makes one forward pass, on any sample, without gradients. Sluice records in which
  // order it reads the layers, since what is read first is exchanged first.
  //
  // There may be several models, which do not wait for each other.
  virtual LoopModel& attach(const NamedParameters& parameters, torch::optim::Optimizer& optimizer,
                            const std::function<void()>& forward,
                            const LoopOptions& options = {}) = 0;
  // The same for all parameters of a torch::nn module.
  template <class Module>
  LoopModel& attach(const Module& module, torch::optim::Optimizer& optimizer,
                    const std::function<void()>& forward, const LoopOptions& options = {}) {
    NamedParameters parameters;
    for (const auto& item : module.named_parameters()) {
      parameters.emplace_back(item.key(), item.value());
    }
    return attach(parameters, optimizer, forward, options);
  }

  // Collective. Writes FOLDER/iteration-N with all that it takes to go on after so many iterations,
  // each process its own part, and returns when it is on the disk; the last `keep` stay. Parameters
  // and the optimizers of all attached models, with their learning rates, go with it, and `more`:
  // buffers, or whatever else the loop needs. All processes share the folder. If one cannot write,
  // throws in all of them; the checkpoints before are still there.
  virtual void save_checkpoint(const std::string& folder, std::int64_t iteration,
                               const NamedParameters& more = {}, std::size_t keep = 3) = 0;
  // Collective. Gives the attached models and `more` what the newest sound checkpoint in the folder
  // has of them, and returns its iteration; 0 if there is none. So a loop begins with it after
  // attach(), whether it was started before or not: `sluice launch --max-restarts` does the rest.
  // Needs the same models and as many processes.
  virtual std::int64_t load_checkpoint(const std::string& folder,
                                       const NamedParameters& more = {}) = 0;

  // Collective.
  virtual void barrier() = 0;
  virtual void broadcast(at::Tensor& tensor, std::size_t root) = 0;
  virtual double mean(double value) = 0;  // over the workers, to evaluate on parts of the data
};

// Joins the other processes, runs `loop` on this thread, and leaves. If it throws in one of several
// processes, that one prints the reason on standard error and all end with exit code 1; a program
// that runs alone gets the exception. May be called again after it has returned.
//
// A program may initialise MPI itself, before the first call, with MPI_THREAD_MULTIPLE; it then
// calls MPI_Finalize after the last one. Otherwise the first call initialises MPI, and it is
// finalised when the process exits successfully. Sluice leaves signals to the program.
void run_loop(const std::function<void(LoopWorker&)>& loop);

}  // namespace sluice
