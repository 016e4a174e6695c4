#include "api/summed_model.h"

#include <ATen/record_function.h>

#include <utility>

#include "base/finite.h"

namespace sluice {

void SummedModel::wait() {
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    bring_up_to_date(layer);
  }
}

void SummedModel::with_global_parameters(const std::function<void()>& use) {
  wait();
  use();
}

void SummedModel::end_step(double loss) {
  exchange().end_step(loss);
  clear_gradients();
  due_.assign(due_.size(), true);
  at_step_ = hyperparameters();
}

bool SummedModel::bring_up_to_date(std::size_t layer) {
  if (!due_[layer]) {
    return true;
  }
  const bool at_once = exchange().is_here(layer);
  wait_for(layer);
  update_from(layer);
  return at_once;
}

void SummedModel::update_from(std::size_t layer) {
  std::vector<std::size_t> here;
  for (std::size_t l = 0; l < layers(); ++l) {
    if (due_[l] && (l == layer || exchange().is_here(l))) {
      exchange().wait(l);
      due_[l] = false;
      here.push_back(l);
    }
  }
  update(here);
}

// An optimizer passes over parameters without a gradient, so it updates these layers only.
void SummedModel::update(const std::vector<std::size_t>& of) {
  const at::DisableRecordFunctionGuard unwatched;
  for (const std::size_t layer : of) {
    for (const std::size_t p : of_layer(layer)) {
      at::Tensor tensor = tensors()[p];
      tensor.mutable_grad() = sum_of(p).to(tensor.device());
    }
  }
  Hyperparameters own = exchange_hyperparameters(std::move(at_step_));
  optimizer().step();
  at_step_ = exchange_hyperparameters(std::move(own));
  clear_gradients();
}

void SummedModel::send(LayerId layer) {
  for (const std::size_t p : of_layer(layer.index())) {
    const at::Tensor target = sum_of(p);
    const at::Tensor& gradient = tensors()[p].grad();
    if (gradient.defined()) {
      target.copy_(gradient);
      target.div_(static_cast<double>(participant().size()));
    } else {
      target.zero_();
    }
  }
  const Range range = exchange().layers()[layer.index()].range;
  check_finite(layer.index(), [&] {
    return all_finite(exchange().gradients().subspan(static_cast<std::size_t>(range.begin),
                                                     static_cast<std::size_t>(range.size())));
  });
  exchange().gradient_ready(layer.index());
}

at::Tensor SummedModel::sum_of(std::size_t parameter) {
  return part_of(exchange().gradients(), parameter);
}

SummedModel::Hyperparameters SummedModel::hyperparameters() {
  Hyperparameters all;
  for (const torch::optim::OptimizerParamGroup& group : optimizer().param_groups()) {
    all.push_back(group.options().clone());
  }
  return all;
}

SummedModel::Hyperparameters SummedModel::exchange_hyperparameters(Hyperparameters with) {
  Hyperparameters own = hyperparameters();
  for (std::size_t g = 0; g < with.size(); ++g) {
    optimizer().param_groups()[g].set_options(std::move(with[g]));
  }
  return own;
}

}  // namespace sluice
