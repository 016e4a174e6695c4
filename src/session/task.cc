#include "session/task.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/file.h"
#include "drivers/realtime/steady_sleeper.h"
#include "session/data_store.h"
#include "session/task_data.h"

namespace sluice {

Result<TorchTask> make_task(const TaskSpec& spec, std::size_t workers, const Log& log) {
  TorchTask task;
  task.model = spec.model;
  task.batch = spec.batch;
  task.accumulate = spec.accumulate;
  task.precision = spec.precision;
  task.loss = spec.loss;
  task.workers = workers;
  task.seed = spec.seed;
  if (is_model_file(spec.model) && belongs_to_another(spec.model)) {
    log.warn(
        fmt::format("model {} is a program and belongs to another user: train only with files "
                    "that you would run",
                    spec.model));
  }
  auto device = torch_device(spec.device);
  if (!device) {
    return device.error();
  }
  task.device = *std::move(device);
  if (!spec.init.empty()) {
    auto saved = read_saved_model(spec.init);
    if (!saved) {
      return saved.error().within("init");
    }
    task.start = std::make_shared<const SavedModel>(*std::move(saved));
  }
  task.sleeper = std::make_shared<SteadySleeper>();
  const auto data =
      spec.shared_data ? spec.shared_data->read(spec, log) : read_task_data(spec, log);
  if (!data) {
    return data.error();
  }
  task.train = data->train;
  task.test = data->test;
  return task;
}

}  // namespace sluice
