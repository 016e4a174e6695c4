#include "session/evaluation.h"

#include <nlohmann/json.hpp>

#include "model/layer.h"
#include "report/json_number.h"
#include "session/engine.h"
#include "session/train_summary.h"
#include "session/workload.h"

namespace sluice {

Result<nlohmann::ordered_json> evaluate_model(const TaskSpec& spec, const Log& log) {
  const auto work = make_workload(spec, LengthSpec{}, Dealing{}, log);
  if (!work) {
    return work.error();
  }
  const TorchTask& task = *work->task;
  const Kernels kernels = choose_kernels(spec.kernels, task, log);
  const auto learners = make_torch_learners(with_kernels(task, kernels));
  if (!learners) {
    return learners.error();
  }
  const std::unique_ptr<Learner> learner = (*learners)(0);
  if (task.start && task.start->lacks_statistics) {
    learner->estimate_statistics();
  }
  nlohmann::ordered_json summary{{"model", work->name},
                                 {"data", name_of(kDataNames, spec.data.kind)},
                                 {"parameters", total_params(learner->layers())},
                                 {"test_samples", task.test->size()}};
  add_task(task, std::string(name_of(kKernelsNames, kernels)), summary);
  add_evaluation(learner->evaluate(), summary);
  summary["parameters_hash"] = parameters_hash(learner->parameters());
  return summary;
}

}  // namespace sluice
