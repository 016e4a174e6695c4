#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <sluice/loop.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "api/loop_checkpoints.h"
#include "api/loop_model.h"
#include "drivers/processes/launch.h"
#include "exchange/participant.h"

namespace sluice {
namespace {

// The parameters that are trained, each once.
std::vector<NamedTensor> trained_of(const LoopWorker::NamedParameters& parameters) {
  std::vector<NamedTensor> trained;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) {
      continue;
    }
    if (tensor.scalar_type() != at::kFloat) {
      throw std::invalid_argument("parameter " + name + " must be of type float");
    }
    trained.push_back({name, tensor});
  }
  if (trained.empty()) {
    throw std::invalid_argument("no parameter requires a gradient");
  }
  return trained;
}

class ProcessWorker final : public LoopWorker {
 public:
  explicit ProcessWorker(Participant& participant) : participant_(participant) {}

  std::size_t rank() const override { return participant_.rank(); }
  std::size_t workers() const override { return participant_.size(); }
  std::size_t local_rank() const override { return participant_.local_rank(); }

  LoopModel& attach(const NamedParameters& parameters, torch::optim::Optimizer& optimizer,
                    const std::function<void()>& forward, const LoopOptions& options) override {
    models_.push_back(
        exchanged_model(participant_, trained_of(parameters), optimizer, forward, options));
    return *models_.back();
  }

  void save_checkpoint(const std::string& folder, std::int64_t iteration,
                       const NamedParameters& more, std::size_t keep) override {
    sluice::save_checkpoint(participant_, models_, more, folder, iteration, keep);
  }
  std::int64_t load_checkpoint(const std::string& folder, const NamedParameters& more) override {
    return sluice::load_checkpoint(participant_, models_, more, folder);
  }

  void barrier() override { participant_.barrier(); }

  void broadcast(at::Tensor& tensor, std::size_t root) override {
    if (root >= workers()) {
      throw std::invalid_argument(fmt::format("there is no rank {} to broadcast from", root));
    }
    const at::NoGradGuard no_grad;
    const at::Tensor copy = tensor.detach().cpu().contiguous();
    participant_.broadcast({static_cast<std::byte*>(copy.data_ptr()), copy.nbytes()}, root);
    tensor.copy_(copy);
  }

  double mean(double value) override {
    participant_.all_reduce({.data = &value, .count = 1, .type = NumberType::kFloat64},
                            Reduction::kSum);
    return value / static_cast<double>(workers());
  }

 private:
  Participant& participant_;
  LoopModels models_;
};

}  // namespace

void run_loop(const std::function<void(LoopWorker&)>& loop) {
  Participant participant(MpiLife::kProcess);
  {
    ProcessWorker worker(participant);
    try {
      loop(worker);
    } catch (const std::exception& why) {
      if (participant.size() > 1) {
        fmt::print(stderr, "sluice: {}: {}\n", rank_on_host(participant.rank()), why.what());
        participant.abort(1);
      }
      throw;
    }
  }
  participant.leave();
}

}  // namespace sluice
