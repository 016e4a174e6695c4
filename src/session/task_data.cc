#include "session/task_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "data/array_set.h"
#include "data/characters.h"
#include "data/cifar.h"
#include "data/coloured_clothes.h"
#include "data/corpus.h"
#include "data/first_samples.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/padded_crops.h"
#include "data/synthetic.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

template <class Split>
TaskData data_of(Split split) {
  return {.train = std::make_shared<const decltype(split.train)>(std::move(split.train)),
          .test = std::make_shared<const decltype(split.test)>(std::move(split.test))};
}

template <class Split>
Result<TaskData> data_of(Result<Split> split) {
  if (!split) {
    return split.error();
  }
  return data_of(*std::move(split));
}

// The part of a data set that the spec asks for.
Result<DataSplit> first_of(Result<DataSplit> split, const DataSpec& spec) {
  if (!split) {
    return split;
  }
  DataSplit kept = *std::move(split);
  keep_first(spec.samples, kept.train);
  keep_first(spec.test_samples, kept.test);
  return kept;
}

Result<DataSplit> read_clothes(const DataSpec& spec) {
  return first_of(read_idx_folder(spec.folder.empty() ? kFashionMnistFolder : spec.folder), spec);
}

Result<TaskData> colour_clothes(const DataSpec& spec) {
  const auto clothes = read_clothes(spec);
  if (!clothes) {
    return clothes.error();
  }
  if (clothes->train.sample_shape != std::vector<std::int64_t>{1, 28, 28}) {
    return Error("data: coloured-clothes are made of images of 28 x 28, as Fashion-MNIST has them");
  }
  return data_of(coloured(*clothes));
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
        "input-shape: is missing; a model from a file needs the shape of a sample for data {}, "
        "such as 3x32x32",
        name_of(kDataNames, data.kind)));
  }
  if (data.kind == DataKind::kCharacters) {
    return form.shape.size() == 2 && form.shape[0] == 1
               ? Result<SampleForm>(form)
               : Error(fmt::format(
                     "input-shape: is \"{}\", expected 1xLENGTH for characters, such as 1x32",
                     fmt::join(form.shape, "x")));
  }
  const bool pairs = form.shape.size() == 2 && form.shape[0] == 2 && form.shape[1] >= 2;
  if (form.words > 0 && !pairs) {
    return Error(fmt::format(
        "input-shape: is \"{}\", expected 2xLONGEST for pairs of sentences, such as 2x20",
        fmt::join(form.shape, "x")));
  }
  if (data.kind == DataKind::kSynthetic && form.words > 0 &&
      std::min(form.words, form.classes) <= kFirstWord) {
    return Error(
        fmt::format("input-words and classes: expected more than {} for sentences, "
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

// One row of words, as a CharacterSet has them; pairs of sentences have two.
bool is_window(const SampleForm& form) { return form.words > 0 && form.shape[0] == 1; }

Result<TaskData> make_up_data(const TaskSpec& spec, const SampleForm& form) {
  const std::int64_t samples = spec.data.samples > 0 ? spec.data.samples : synthetic_samples(form);
  const std::int64_t tests =
      spec.data.test_samples > 0 ? spec.data.test_samples : std::max<std::int64_t>(samples / 10, 1);
  if (is_window(form)) {
    return data_of(make_synthetic_characters({.length = form.shape.back(),
                                              .train_samples = samples,
                                              .test_samples = tests,
                                              .seed = spec.seed}));
  }
  if (form.words > 0) {
    return data_of(make_synthetic_text({.longest = form.shape.back(),
                                        .source_words = form.words,
                                        .target_words = form.classes,
                                        .train_samples = samples,
                                        .test_samples = tests,
                                        .seed = spec.seed}));
  }
  return data_of(make_synthetic({.sample_shape = form.shape,
                                 .classes = form.classes,
                                 .train_samples = samples,
                                 .test_samples = tests,
                                 .seed = spec.seed}));
}

Result<TaskData> find_pictures(const TaskSpec& spec, const SampleForm& form) {
  const std::vector<std::int64_t>& shape = form.shape;
  if (form.words > 0 || shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    return Error(fmt::format("data: model {} does not take images; choose another", spec.model));
  }
  const auto side = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
  return data_of(find_images({.folder = spec.data.folder,
                              .raster = {side(0), side(1), side(2)},
                              .varied = spec.data.augment}));
}

Result<TaskData> read_sentences(const TaskSpec& spec, const SampleForm& form, const Log& log) {
  if (form.words == 0 || is_window(form)) {
    return Error(fmt::format("data: model {} does not take text; choose sockeye", spec.model));
  }
  auto corpus = read_corpus({.folder = spec.data.folder,
                             .source = spec.data.source,
                             .target = spec.data.target,
                             .vocabulary = spec.data.vocabulary,
                             .longest = form.shape.back()});
  if (corpus && corpus->left_out > 0) {
    log.info(fmt::format(
        "{} pairs of sentences are left out: one of them is empty or longer than {} words",
        corpus->left_out, form.shape.back() - 1));
  }
  return data_of(std::move(corpus));
}

Result<TaskData> read_windows(const TaskSpec& spec, const SampleForm& form) {
  if (!is_model_file(spec.model) && !is_window(form)) {
    return Error(
        fmt::format("data: model {} does not take characters; choose char-gpt", spec.model));
  }
  const DataSpec& data = spec.data;
  auto split =
      read_characters(data.folder.empty() ? kLicenceFolder : data.folder, form.shape.back());
  if (!split) {
    return split.error();
  }
  CharacterSplit kept = *std::move(split);
  kept.train.count = data.samples;
  kept.train.drawn = data.augment;
  kept.test.count = data.test_samples;
  return data_of(std::move(kept));
}

// Data whose samples depend on the model.
Result<TaskData> read_for_model(const TaskSpec& spec, const Log& log) {
  const auto form = wanted_form(spec);
  if (!form) {
    return form.error();
  }
  switch (spec.data.kind) {
    case DataKind::kImages:
      return find_pictures(spec, *form);
    case DataKind::kText:
      return read_sentences(spec, *form, log);
    case DataKind::kCharacters:
      return read_windows(spec, *form);
    case DataKind::kSynthetic:
      return make_up_data(spec, *form);
    case DataKind::kFashionMnist:
    case DataKind::kColouredClothes:
    case DataKind::kCifar10:
    case DataKind::kCifar100:
    case DataKind::kArrays:
      break;
  }
  fail_check("this data set has samples of its own");
}

Result<TaskData> read_cifar(const DataSpec& spec, Cifar kind) {
  auto data = data_of(first_of(read_cifar_folder(spec.folder, kind), spec));
  if (!data || !spec.augment) {
    return data;
  }
  return TaskData{.train = std::make_shared<const PaddedCrops>(data->train), .test = data->test};
}

}  // namespace

Result<TaskData> read_task_data(const TaskSpec& spec, const Log& log) {
  const DataKind kind = spec.data.kind;
  const bool needs_folder = kind != DataKind::kSynthetic && kind != DataKind::kFashionMnist &&
                            kind != DataKind::kColouredClothes && kind != DataKind::kCharacters;
  if (needs_folder && spec.data.folder.empty()) {
    return Error(fmt::format("data-dir: is missing; data {} needs the folder of its files",
                             name_of(kDataNames, kind)));
  }
  switch (kind) {
    case DataKind::kFashionMnist:
      return data_of(read_clothes(spec.data));
    case DataKind::kColouredClothes:
      return colour_clothes(spec.data);
    case DataKind::kCifar10:
      return read_cifar(spec.data, Cifar::k10);
    case DataKind::kCifar100:
      return read_cifar(spec.data, Cifar::k100);
    case DataKind::kArrays:
      return data_of(read_arrays(spec.data.folder));
    case DataKind::kImages:
    case DataKind::kText:
    case DataKind::kCharacters:
    case DataKind::kSynthetic:
      return read_for_model(spec, log);
  }
  fail_check("there is no such kind of data");
}

}  // namespace sluice
