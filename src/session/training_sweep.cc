#include "session/training_sweep.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "drivers/realtime/interrupt.h"
#include "drivers/realtime/work_threads.h"
#include "session/data_store.h"
#include "session/engine.h"
#include "session/sweep.h"
#include "session/task.h"

namespace sluice {
namespace {

// A choice that measures is made once: kernels are those of the whole process.
Result<void> choose_kernels_for(std::vector<VirtualTraining>& trainings, const Log& log) {
  const auto task_of = [](VirtualTraining& training) -> TaskSpec& {
    return std::get<TaskSpec>(training.spec.work);
  };
  const std::optional<Kernels> asked = task_of(trainings.front()).kernels;
  for (VirtualTraining& training : trainings) {
    if (task_of(training).kernels != asked) {
      return Error("kernels: are those of the whole process; all trainings must have the same")
          .within(training.name);
    }
  }
  VirtualTraining& first = trainings.front();
  auto task = make_task(task_of(first), first.spec.hosts.workers, log);
  if (!task) {
    return task.error().within(first.name);
  }
  const Kernels kernels = choose_kernels(asked, *task, log);
  for (VirtualTraining& training : trainings) {
    task_of(training).kernels = kernels;
  }
  return {};
}

// Many trainings report at a time: only their warnings are shown, each with its name.
Log log_of(const std::string& name, const Log& log) {
  Log own;
  own.warn = [name, warn = log.warn](const std::string& text) { warn(name + ": " + text); };
  return own;
}

}  // namespace

Result<TrainingSweep> TrainingSweep::prepare(std::vector<VirtualTraining> trainings,
                                             std::size_t threads, const Log& log) {
  const auto cores = static_cast<std::size_t>(threads_or_cores(threads));
  const auto data = std::make_shared<DataStore>();
  for (VirtualTraining& training : trainings) {
    std::get<TaskSpec>(training.spec.work).shared_data = data;
    training.cluster.threads = std::max<std::size_t>(1, cores / trainings.size());
  }
  if (const auto chosen = choose_kernels_for(trainings, log); !chosen) {
    return chosen.error();
  }
  std::vector<Cell> cells;
  for (VirtualTraining& training : trainings) {
    auto group = make_virtual_group(std::move(training.cluster));
    auto session = TrainingSession::prepare(*group, training.spec, {}, log_of(training.name, log));
    if (!session) {
      return session.error().within(training.name);
    }
    cells.push_back({std::move(training.name), std::move(group), *std::move(session)});
  }
  return TrainingSweep(std::move(cells), std::min(cores, trainings.size()));
}

TrainingSweep::Outcome TrainingSweep::run(const std::function<void(std::size_t)>& done) {
  const Interrupt interrupt;
  Outcome outcome;
  outcome.summaries.resize(cells_.size());
  const auto train = [&](std::size_t c) {
    if (interrupt.signal() != 0) {
      return;
    }
    Cell& cell = cells_[c];
    cell.session.stop_when([&] { return interrupt.signal(); });
    try {
      TrainReport report = cell.session.run();
      if (report.fault) {
        throw std::runtime_error(report.fault->message());
      }
      outcome.summaries[c] = std::move(report.summary);
    } catch (const std::exception& e) {
      throw std::runtime_error(cell.name + ": " + e.what());
    }
  };
  for_each_cell(cells_.size(), at_a_time_, train, done);
  if (const int signal = interrupt.signal(); signal != 0) {
    return {.summaries = {}, .stopped = signal};
  }
  return outcome;
}

}  // namespace sluice
