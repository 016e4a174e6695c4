#include "cli/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compute/data/cifar.h"
#include "compute/data/idx.h"
#include "compute/data/sharding.h"
#include "compute/data/synthetic.h"
#include "compute/replay_learner.h"
#include "runtime/steady_sleeper.h"

namespace sluice::cli {
namespace {

constexpr const char* kReplay = "replay:";
constexpr Iteration kReplayIterations = 20;

template <class Split>
void give(Split split, TorchTask& task) {
  task.train = std::make_shared<const decltype(split.train)>(std::move(split.train));
  task.test = std::make_shared<const decltype(split.test)>(std::move(split.test));
}

// How many samples to make up, by default.
std::int64_t synthetic_samples(const SampleForm& form) {
  constexpr std::int64_t kMost = 10'000;
  constexpr std::int64_t kMostFloats = std::int64_t{1} << 27U;
  const std::int64_t size =
      std::accumulate(form.shape.begin(), form.shape.end(), std::int64_t{1}, std::multiplies<>());
  return std::clamp<std::int64_t>(kMostFloats / size, 1, kMost);
}

Result<void> make_up_data(const Settings& settings, std::int64_t asked, TorchTask& task) {
  const auto form = model_form(task.model, settings.integer("input-size"));
  if (!form) {
    return form.error();
  }
  const std::int64_t samples = asked > 0 ? asked : synthetic_samples(*form);
  const std::int64_t tests = std::max<std::int64_t>(samples / 10, 1);
  if (form->words > 0) {
    give(make_synthetic_text({.longest = form->shape.back(),
                              .source_words = form->words,
                              .target_words = form->classes,
                              .train_samples = samples,
                              .test_samples = tests,
                              .seed = task.seed}),
         task);
  } else {
    give(make_synthetic({.sample_shape = form->shape,
                         .classes = form->classes,
                         .train_samples = samples,
                         .test_samples = tests,
                         .seed = task.seed}),
         task);
  }
  return {};
}

Result<DataSplit> read_split(const Settings& settings) {
  const std::string data = settings.text("data");
  const std::string folder = settings.text("data-dir");
  if (data == "fashion-mnist") {
    return read_idx_folder(folder);
  }
  if (settings.origin("data-dir").kind == Origin::Kind::kDefault) {
    return Error("--data-dir: is missing; " + data + " needs the folder of its binary files");
  }
  return read_cifar_folder(folder, data == "cifar10" ? Cifar::k10 : Cifar::k100);
}

Result<void> read_data(const Settings& settings, TorchTask& task) {
  auto split = read_split(settings);
  if (!split) {
    return split.error();
  }
  give(*std::move(split), task);
  return {};
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

Result<Workload> training(const Settings& settings) {
  if (const auto plain =
          settings.refuse({"time-scale", "param-scale"}, "is for --model replay:PROFILE.json only");
      !plain) {
    return plain.error();
  }
  const bool synthetic = settings.text("data") == "synthetic";
  if (const auto plain = settings.refuse({"samples", "input-size"}, "is for --data synthetic only");
      !synthetic && !plain) {
    return plain.error();
  }
  auto task = task_of(settings, static_cast<std::size_t>(settings.integer("workers")),
                      settings.integer("samples"));
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
  if (const auto plain = settings.refuse(
          {"data", "data-dir", "samples", "input-size", "batch", "epochs"},
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

Result<TorchTask> task_of(const Settings& settings, std::size_t workers, std::int64_t samples) {
  TorchTask task;
  task.model = settings.text("model");
  task.batch = settings.integer("batch");
  task.workers = workers;
  task.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  auto device = torch_device(settings.text("device"));
  if (!device) {
    return device.error();
  }
  task.device = *std::move(device);
  task.sleeper = std::make_shared<SteadySleeper>();
  const auto given = settings.text("data") == "synthetic" ? make_up_data(settings, samples, task)
                                                          : read_data(settings, task);
  if (!given) {
    return given.error();
  }
  return task;
}

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
