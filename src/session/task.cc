#include "session/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "data/cifar.h"
#include "data/corpus.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/synthetic.h"
#include "drivers/realtime/steady_sleeper.h"

namespace sluice {
namespace {

template <class Split>
void give(Split split, TorchTask& task) {
  task.train = std::make_shared<const decltype(split.train)>(std::move(split.train));
  task.test = std::make_shared<const decltype(split.test)>(std::move(split.test));
}

// The default number of synthetic samples.
std::int64_t synthetic_samples(const SampleForm& form) {
  constexpr std::int64_t kMax = 10'000;
  const std::int64_t size =
      std::accumulate(form.shape.begin(), form.shape.end(), std::int64_t{1}, std::multiplies<>());
  return std::clamp<std::int64_t>(kMaxSampleFloats / size, 1, kMax);
}

// The samples for a model from a file, which does not define its input.
Result<SampleForm> asked_form(const DataSpec& data) {
  const bool is_text = data.kind == DataKind::kText;
  const SampleForm form{data.input_shape, data.classes,
                        is_text ? data.vocabulary : data.input_words};
  if (form.shape.empty()) {
    return Error(fmt::format(
        "--input-shape: is missing; a model from a file needs the shape of a sample for --data {}, "
        "such as 3x32x32",
        name_of(kDataNames, data.kind)));
  }
  const bool pairs = form.shape.size() == 2 && form.shape[0] == 2 && form.shape[1] >= 2;
  if (form.words > 0 && !pairs) {
    return Error(fmt::format(
        "--input-shape: is \"{}\", expected 2xLONGEST for pairs of sentences, such as 2x20",
        fmt::join(form.shape, "x")));
  }
  if (data.kind == DataKind::kSynthetic && form.words > 0 &&
      std::min(form.words, form.classes) <= kFirstWord) {
    return Error(
        fmt::format("--input-words and --classes: expected more than {} for sentences, "
                    "found {} and {}",
                    kFirstWord, form.words, form.classes));
  }
  return form;
}

// The samples that the model takes.
Result<SampleForm> wanted_form(const TaskSpec& spec) {
  return is_model_file(spec.model) ? asked_form(spec.data)
                                   : model_form(spec.model, spec.data.input_size);
}

Result<void> make_up_data(const TaskSpec& spec, TorchTask& task) {
  const auto form = wanted_form(spec);
  if (!form) {
    return form.error();
  }
  const std::int64_t samples = spec.data.samples > 0 ? spec.data.samples : synthetic_samples(*form);
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

// Moves the reader's split, if there is one, into the task.
template <class Split>
Result<void> take(Result<Split> split, TorchTask& task) {
  if (!split) {
    return split.error();
  }
  give(*std::move(split), task);
  return {};
}

Result<void> find_pictures(const TaskSpec& spec, TorchTask& task) {
  const auto form = wanted_form(spec);
  if (!form) {
    return form.error();
  }
  const std::vector<std::int64_t>& shape = form->shape;
  if (form->words > 0 || shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    return Error(fmt::format("--data: model {} does not take images; choose another", spec.model));
  }
  const auto side = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
  return take(find_images({.folder = spec.data.folder,
                           .raster = {side(0), side(1), side(2)},
                           .varied = spec.data.augment}),
              task);
}

Result<void> read_sentences(const TaskSpec& spec, TorchTask& task, const Log& log) {
  const auto form = wanted_form(spec);
  if (!form) {
    return form.error();
  }
  if (form->words == 0) {
    return Error(fmt::format("--data: model {} does not take text; choose sockeye", spec.model));
  }
  auto corpus = read_corpus({.folder = spec.data.folder,
                             .source = spec.data.source,
                             .target = spec.data.target,
                             .vocabulary = spec.data.vocabulary,
                             .longest = form->shape.back()});
  if (corpus && corpus->left_out > 0) {
    log.info(fmt::format(
        "{} pairs of sentences are left out: one of them is empty or longer than {} words",
        corpus->left_out, form->shape.back() - 1));
  }
  return take(std::move(corpus), task);
}

Result<void> read_data(const TaskSpec& spec, TorchTask& task, const Log& log) {
  const DataSpec& data = spec.data;
  const bool needs_folder =
      data.kind != DataKind::kSynthetic && data.kind != DataKind::kFashionMnist;
  if (needs_folder && data.folder.empty()) {
    return Error(fmt::format("--data-dir: is missing; --data {} needs the folder of its files",
                             name_of(kDataNames, data.kind)));
  }
  switch (data.kind) {
    case DataKind::kFashionMnist:
      return take(read_idx_folder(data.folder.empty() ? kFashionMnistFolder : data.folder), task);
    case DataKind::kCifar10:
      return take(read_cifar_folder(data.folder, Cifar::k10), task);
    case DataKind::kCifar100:
      return take(read_cifar_folder(data.folder, Cifar::k100), task);
    case DataKind::kImages:
      return find_pictures(spec, task);
    case DataKind::kText:
      return read_sentences(spec, task, log);
    case DataKind::kSynthetic:
      return make_up_data(spec, task);
  }
  fail_check("there is no such kind of data");
}

}  // namespace

Result<TorchTask> make_task(const TaskSpec& spec, std::size_t workers, const Log& log) {
  TorchTask task;
  task.model = spec.model;
  task.batch = spec.batch;
  task.workers = workers;
  task.seed = spec.seed;
  auto device = torch_device(spec.device);
  if (!device) {
    return device.error();
  }
  task.device = *std::move(device);
  task.sleeper = std::make_shared<SteadySleeper>();
  if (const auto read = read_data(spec, task, log); !read) {
    return read.error();
  }
  return task;
}

}  // namespace sluice
