#include "session/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <numeric>
#include <sstream>

#include "data/cifar.h"
#include "data/corpus.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/synthetic.h"
#include "drivers/realtime/steady_sleeper.h"
#include "learners/replay_learner.h"

namespace sluice {
namespace {

constexpr const char* kReplay = "replay:";
constexpr Iteration kReplayIterations = 20;

template <class Split>
void give(Split split, TorchTask& task) {
  task.train = std::make_shared<const decltype(split.train)>(std::move(split.train));
  task.test = std::make_shared<const decltype(split.test)>(std::move(split.test));
}

constexpr std::int64_t kMostFloats = std::int64_t{1} << 27U;  // 512 MiB of them

// How many samples to make up, by default.
std::int64_t synthetic_samples(const SampleForm& form) {
  constexpr std::int64_t kMax = 10'000;
  const std::int64_t size =
      std::accumulate(form.shape.begin(), form.shape.end(), std::int64_t{1}, std::multiplies<>());
  return std::clamp<std::int64_t>(kMostFloats / size, 1, kMax);
}

// "3x32x32" as numbers; empty if it is none, or too large.
std::vector<std::int64_t> shape_of(const std::string& text) {
  std::vector<std::int64_t> shape;
  std::int64_t room = kMostFloats;
  std::istringstream sides(text + "x");
  for (std::string side; std::getline(sides, side, 'x');) {
    std::int64_t length = 0;
    const auto [end, fault] = std::from_chars(side.data(), side.data() + side.size(), length);
    if (fault != std::errc() || end != side.data() + side.size() || length < 1 || length > room) {
      return {};
    }
    shape.push_back(length);
    room /= length;
  }
  return shape;
}

// The samples for a model from a file, which does not tell what it takes.
Result<SampleForm> asked_form(const cli::Settings& settings) {
  const std::string text = settings.text("input-shape");
  const std::string data = settings.text("data");
  if (text.empty()) {
    return Error(fmt::format(
        "--input-shape: is missing; a model from a file needs the shape of a sample for --data {}, "
        "such as 3x32x32",
        data));
  }
  const SampleForm form{shape_of(text), settings.integer("classes"),
                        settings.integer(data == "text" ? "vocabulary" : "input-words")};
  const bool pairs = form.shape.size() == 2 && form.shape[0] == 2 && form.shape[1] >= 2;
  if (form.shape.empty() || (form.words > 0 && !pairs)) {
    return Error(fmt::format("--input-shape: is \"{}\", expected {}", text,
                             form.words > 0
                                 ? "2xLONGEST for pairs of sentences, such as 2x20"
                                 : "whole numbers such as 3x32x32, a sample of 512 MiB at most"));
  }
  if (data == "synthetic" && form.words > 0 && std::min(form.words, form.classes) <= kFirstWord) {
    return Error(
        fmt::format("--input-words and --classes: expected more than {} for sentences, "
                    "found {} and {}",
                    kFirstWord, form.words, form.classes));
  }
  return form;
}

// The samples that the model takes.
Result<SampleForm> wanted_form(const cli::Settings& settings) {
  const std::string model = settings.text("model");
  return is_model_file(model) ? asked_form(settings)
                              : model_form(model, settings.integer("input-size"));
}

Result<void> make_up_data(const cli::Settings& settings, std::int64_t asked, TorchTask& task) {
  const auto form = wanted_form(settings);
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

// The reader's split, if there is one, into the task.
template <class Split>
Result<void> take(Result<Split> split, TorchTask& task) {
  if (!split) {
    return split.error();
  }
  give(*std::move(split), task);
  return {};
}

Result<void> find_pictures(const cli::Settings& settings, TorchTask& task) {
  const auto form = wanted_form(settings);
  if (!form) {
    return form.error();
  }
  const std::vector<std::int64_t>& shape = form->shape;
  if (form->words > 0 || shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    return Error(fmt::format("--data: model {} does not take images; choose another", task.model));
  }
  const auto side = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
  return take(find_images({.folder = settings.text("data-dir"),
                           .raster = {side(0), side(1), side(2)},
                           .varied = settings.on("augment")}),
              task);
}

Result<void> read_sentences(const cli::Settings& settings, TorchTask& task) {
  const auto form = wanted_form(settings);
  if (!form) {
    return form.error();
  }
  if (form->words == 0) {
    return Error(fmt::format("--data: model {} does not take text; choose sockeye", task.model));
  }
  auto corpus = read_corpus({.folder = settings.text("data-dir"),
                             .source = settings.text("source"),
                             .target = settings.text("target"),
                             .vocabulary = settings.integer("vocabulary"),
                             .longest = form->shape.back()});
  if (corpus && corpus->left_out > 0) {
    spdlog::info("{} pairs of sentences are left out: one of them is empty or longer than {} words",
                 corpus->left_out, form->shape.back() - 1);
  }
  return take(std::move(corpus), task);
}

// `samples` is how many to make up if they are to be made up; 0: as many as suit.
Result<void> read_data(const cli::Settings& settings, std::int64_t samples, TorchTask& task) {
  const std::string data = settings.text("data");
  const std::string folder = settings.text("data-dir");
  if (data == "synthetic") {
    return make_up_data(settings, samples, task);
  }
  if (data == "fashion-mnist") {
    return take(read_idx_folder(folder), task);
  }
  if (settings.origin("data-dir").kind == cli::Origin::Kind::kDefault) {
    return Error("--data-dir: is missing; --data " + data + " needs the folder of its files");
  }
  if (data == "images") {
    return find_pictures(settings, task);
  }
  if (data == "text") {
    return read_sentences(settings, task);
  }
  return take(read_cifar_folder(folder, data == "cifar10" ? Cifar::k10 : Cifar::k100), task);
}

Result<Extent> extent_of(const cli::Settings& settings, const TorchTask& task) {
  const Sharding sharding = task.sharding();
  Extent extent{.workers = task.workers,
                .batch = task.batch,
                .iterations = settings.integer("iterations"),
                .per_epoch = sharding.steps_per_epoch(),
                .samples_per_epoch = sharding.samples_per_epoch(),
                .sharding = sharding};
  if (extent.per_epoch == 0) {
    return Error(fmt::format(
        "--batch: {} workers with {} samples each need {}, and the data set has {}; take a smaller "
        "batch or fewer workers",
        task.workers, task.batch, task.batch * static_cast<std::int64_t>(task.workers),
        task.train->size()));
  }
  if (extent.iterations == 0) {
    extent.iterations = extent.per_epoch * settings.integer("epochs");
  }
  return extent;
}

// A flag for other data than the user's would be without effect.
Result<void> check_data_flags(const cli::Settings& settings) {
  struct Rule {
    const char* key;
    std::vector<std::string> data;
  };
  for (const Rule& rule :
       {Rule{"samples", {"synthetic"}}, Rule{"input-size", {"images", "text", "synthetic"}},
        Rule{"input-shape", {"images", "text", "synthetic"}}, Rule{"input-words", {"synthetic"}},
        Rule{"classes", {"synthetic"}}, Rule{"augment", {"images"}}, Rule{"source", {"text"}},
        Rule{"target", {"text"}}, Rule{"vocabulary", {"text"}}}) {
    const auto unused = settings.refuse(
        {rule.key}, fmt::format("is for --data {} only", fmt::join(rule.data, ", ")));
    if (!unused && std::ranges::find(rule.data, settings.text("data")) == rule.data.end()) {
      return unused.error();
    }
  }
  return is_model_file(settings.text("model"))
             ? settings.refuse({"input-size"},
                               "is for built-in models; for one from a file take --input-shape")
             : settings.refuse({"input-shape", "input-words", "classes"},
                               "is for a model from a file; a built-in one takes --input-size");
}

Result<Workload> training(const cli::Settings& settings) {
  if (const auto plain =
          settings.refuse({"time-scale", "param-scale"}, "is for --model replay:PROFILE.json only");
      !plain) {
    return plain.error();
  }
  if (const auto fitting = check_data_flags(settings); !fitting) {
    return fitting.error();
  }
  auto loader =
      std::make_shared<AheadLoader>(static_cast<std::size_t>(settings.integer("loaders")));
  auto found = task_of(settings, static_cast<std::size_t>(settings.integer("workers")),
                       settings.integer("samples"));
  if (!found) {
    return found.error();
  }
  TorchTask task = *std::move(found);
  task.loader = loader;
  auto extent = extent_of(settings, task);
  if (!extent) {
    return extent.error();
  }
  auto factory = make_torch_learners(task);
  if (!factory) {
    return factory.error();
  }
  return Workload{.name = std::filesystem::path(task.model).stem(),
                  .extent = *extent,
                  .factory = *std::move(factory),
                  .task = std::move(task),
                  .loader = std::move(loader)};
}

Result<Workload> replay(const cli::Settings& settings, const std::string& path) {
  if (const auto plain = settings.refuse(
          {"data", "data-dir", "samples", "input-size", "input-shape", "input-words", "classes",
           "augment", "source", "target", "vocabulary", "loaders", "batch", "epochs"},
          "a replay has no data; its batch is the profile's, its length --iterations");
      !plain) {
    return plain.error();
  }
  if (const auto plain = settings.refuse({"save"}, "a replay learns nothing"); !plain) {
    return plain.error();
  }
  auto profile = scaled_profile(path, settings);
  if (!profile) {
    return profile.error();
  }
  const Iteration asked = settings.integer("iterations");
  const Iteration iterations = asked == 0 ? kReplayIterations : asked;
  const auto workers = static_cast<std::size_t>(settings.integer("workers"));
  return Workload{.name = "replay-" + profile->name,
                  .extent = {.workers = workers,
                             .batch = profile->batch,
                             .iterations = iterations,
                             .per_epoch = iterations,
                             .samples_per_epoch =
                                 iterations * profile->batch * static_cast<std::int64_t>(workers)},
                  .factory = make_replay_learners(*profile, std::make_shared<SteadySleeper>()),
                  .task = std::nullopt,
                  .loader = nullptr};
}

}  // namespace

Result<TorchTask> task_of(const cli::Settings& settings, std::size_t workers,
                          std::int64_t samples) {
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
  if (const auto read = read_data(settings, samples, task); !read) {
    return read.error();
  }
  return task;
}

Result<Workload> workload_of(const cli::Settings& settings) {
  const std::string model = settings.text("model");
  return model.starts_with(kReplay) ? replay(settings, model.substr(std::string(kReplay).size()))
                                    : training(settings);
}

Result<Profile> scaled_profile(const std::string& path, const cli::Settings& settings) {
  auto profile = read_profile(path);
  if (!profile) {
    return profile;
  }
  const double scale = settings.number("time-scale");
  if (const double us = to_us(profile->forward() + profile->backward()) * scale;
      us > kLongestPassUs) {
    return Error(fmt::format(
        "--time-scale: brings the sum of all layers of {} to {:.3g} us, expected at most {:.3g} us",
        path, us, kLongestPassUs));
  }
  return scaled(*std::move(profile), scale, settings.number("param-scale"));
}

}  // namespace sluice
