#include "session/task.h"

#include <memory>
#include <utility>

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
  task.workers = workers;
  task.seed = spec.seed;
  auto device = torch_device(spec.device);
  if (!device) {
    return device.error();
  }
  task.device = *std::move(device);
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
