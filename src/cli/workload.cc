#include "cli/workload.h"

#include <fmt/format.h>

#include "compute/data/idx.h"
#include "compute/data/sharding.h"
#include "compute/data/synthetic.h"
#include "compute/replay_learner.h"
#include "runtime/steady_sleeper.h"

namespace sluice::cli {
namespace {

constexpr const char* kReplay = "replay:";
constexpr Iteration kReplayIterations = 20;

Result<TorchTask> task_of(const Settings& settings) {
  TorchTask task;
  task.model = settings.text("model");
  task.batch = settings.integer("batch");
  task.workers = static_cast<std::size_t>(settings.integer("workers"));
  task.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  DataSplit split;
  if (settings.text("data") == "synthetic") {
    SyntheticSpec spec;
    spec.seed = task.seed;
    spec.sample_shape = {1, 28, 28};
    split = make_synthetic(spec);
  } else {
    auto read = read_idx_folder(settings.text("data-dir"));
    if (!read) {
      return read.error();
    }
    split = *std::move(read);
  }
  task.train = std::make_shared<const DataSet>(std::move(split.train));
  task.test = std::make_shared<const DataSet>(std::move(split.test));
  return task;
}

Result<Extent> extent_of(const Settings& settings, const TorchTask& task) {
  const Sharding sharding{task.seed, task.train->size(), task.batch, task.workers};
  Extent extent{.workers = task.workers,
                .batch = task.batch,
                .iterations = settings.integer("iterations"),
                .per_epoch = sharding.steps_per_epoch()};
  if (extent.per_epoch == 0) {
    return Error(fmt::format(
        "--batch: {} workers with {} samples each need {}, and the data set has {}; take a smaller "
        "batch or fewer workers",
        task.workers, task.batch, extent.samples_after(1), task.train->size()));
  }
  if (extent.iterations == 0) {
    extent.iterations = extent.per_epoch * settings.integer("epochs");
  }
  return extent;
}

Result<void> refuse_flags(const Settings& settings, std::initializer_list<const char*> keys,
                          const std::string& why) {
  for (const char* key : keys) {
    if (settings.origin(key).kind == Origin::Kind::kFlag) {
      return Error(fmt::format("--{}: {}", key, why));
    }
  }
  return {};
}

Result<Workload> training(const Settings& settings) {
  if (const auto plain = refuse_flags(settings, {"time-scale", "param-scale"},
                                      "is for --model replay:PROFILE.json only");
      !plain) {
    return plain.error();
  }
  auto task = task_of(settings);
  if (!task) {
    return task.error();
  }
  auto extent = extent_of(settings, *task);
  if (!extent) {
    return extent.error();
  }
  auto factory = make_torch_learners(*task);
  if (!factory) {
    return factory.error();
  }
  return Workload{task->model, *extent, *std::move(factory), *std::move(task)};
}

Result<Workload> replay(const Settings& settings, const std::string& path) {
  if (const auto plain =
          refuse_flags(settings, {"data", "data-dir", "batch", "epochs"},
                       "a replay has no data; its batch is the profile's, its length --iterations");
      !plain) {
    return plain.error();
  }
  auto profile = scaled_profile(path, settings);
  if (!profile) {
    return profile.error();
  }
  const Iteration asked = settings.integer("iterations");
  const Iteration iterations = asked == 0 ? kReplayIterations : asked;
  return Workload{"replay-" + profile->name,
                  {.workers = static_cast<std::size_t>(settings.integer("workers")),
                   .batch = profile->batch,
                   .iterations = iterations,
                   .per_epoch = iterations},
                  make_replay_learners(*profile, std::make_shared<SteadySleeper>()),
                  std::nullopt};
}

}  // namespace

Result<Workload> workload_of(const Settings& settings) {
  const std::string model = settings.text("model");
  return model.starts_with(kReplay) ? replay(settings, model.substr(std::string(kReplay).size()))
                                    : training(settings);
}

Result<Profile> scaled_profile(const std::string& path, const Settings& settings) {
  auto profile = read_profile(path);
  if (!profile) {
    return profile;
  }
  return scaled(*std::move(profile), settings.number("time-scale"), settings.number("param-scale"));
}

}  // namespace sluice::cli
