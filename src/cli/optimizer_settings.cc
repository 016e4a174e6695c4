#include "cli/optimizer_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/check.h"
#include "base/text.h"
#include "cli/setting_table.h"

namespace sluice::cli {
namespace {

// Visits the hyper-parameters: key, form, help, which one it is, access to the value.
template <class Visit>
void for_each_hyper(Visit visit) {
  const Form share = Form::number(0, 1);
  visit(
      "dampening", share, "sgd: dampening of the momentum", Hyper::kDampening,
      [](auto& o) -> auto& { return o.dampening; });
  visit(
      "nesterov", Form::on_or_off(), "sgd: Nesterov's momentum", Hyper::kNesterov,
      [](auto& o) -> auto& { return o.nesterov; });
  visit(
      "beta1", share, "adam, adamw, lamb: decay of the mean gradient per update", Hyper::kBeta1,
      [](auto& o) -> auto& { return o.beta1; });
  visit(
      "beta2", share, "adam, adamw, lamb: decay of the mean squared gradient per update",
      Hyper::kBeta2, [](auto& o) -> auto& { return o.beta2; });
  visit(
      "epsilon", share,
      "all but sgd: added to the divisor; adagrad has 1e-10 by default, lamb 1e-6", Hyper::kEpsilon,
      [](auto& o) -> auto& { return o.epsilon; });
  visit(
      "alpha", share, "rmsprop: decay of the mean squared gradient per update", Hyper::kAlpha,
      [](auto& o) -> auto& { return o.alpha; });
  visit(
      "centered", Form::on_or_off(), "rmsprop: divide by the deviation from the mean gradient",
      Hyper::kCentered, [](auto& o) -> auto& { return o.centered; });
  visit(
      "lr-decay", share, "adagrad: the learning rate is divided by 1 + this * updates so far",
      Hyper::kLrDecay, [](auto& o) -> auto& { return o.lr_decay; });
}

// The optimisers that have it: "adam, adamw, lamb".
std::string takers_of(Hyper hyper) {
  std::vector<std::string_view> names;
  for (const OptimizerTraits& optimizer : kOptimizers) {
    if (optimizer.takes.contains(hyper)) {
      names.push_back(optimizer.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<void> check_hyper_flags(const Settings& settings, const OptimizerTraits& optimizer) {
  Result<void> fitting;
  const auto look = [&](const char* key, Hyper hyper) {
    if (fitting && !optimizer.takes.contains(hyper)) {
      fitting = settings.refuse({key}, fmt::format("is for --optimizer {} only, and this one is {}",
                                                   takers_of(hyper), optimizer.name));
    }
  };
  look("momentum", Hyper::kMomentum);
  for_each_hyper(
      [&](const char* key, const Form&, const char*, Hyper hyper, auto) { look(key, hyper); });
  return fitting;
}

Result<void> check_schedule_flags(const Settings& settings, RateShape shape) {
  const std::string why =
      fmt::format("has no effect on --lr-schedule {}; it is for ", name_of(kRateShapeNames, shape));
  if (shape != RateShape::kStep) {
    if (auto fitting = settings.refuse(
            {"lr-decay-epochs", "lr-decay-iterations", "lr-decay-factor"}, why + "step");
        !fitting) {
      return fitting;
    }
  }
  if (shape == RateShape::kStep || shape == RateShape::kConstant) {
    return settings.refuse({"lr-final", "lr-by"}, why + "cosine and linear");
  }
  return {};
}

// "30,60,80" as numbers.
Result<std::vector<std::int64_t>> numbers_of(const Settings& settings, const std::string& key,
                                             std::int64_t max) {
  const std::string text = settings.text(key);
  std::vector<std::int64_t> numbers;
  for (const std::string& word : split_list(text)) {
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (fault != std::errc() || end != word.data() + word.size() || number < 1 || number > max) {
      return Error(fmt::format(
          "--{}: \"{}\" in \"{}\"; expected whole numbers from 1 with commas between them, such "
          "as 30,60,80",
          key, word, text));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::vector<Setting> hyper_settings() {
  const OptimizerOptions defaults;
  std::vector<Setting> all;
  for_each_hyper([&](const char* key, const Form& form, const char* help, Hyper, auto access) {
    all.push_back({key, kRuns, form, access(defaults), help});
  });
  return all;
}

Json to_values(Optimizer optimizer) {
  if (optimizer == Optimizer::kSgd) {
    return Json::object();
  }
  const OptimizerTraits& traits = traits_of(optimizer);
  Json values{{"lr", traits.learning_rate},
              {"momentum", traits.momentum},
              {"weight-decay", traits.weight_decay}};
  for_each_hyper([&](const char* key, const Form&, const char*, Hyper hyper, auto access) {
    if (traits.takes.contains(hyper)) {
      values[key] = access(traits.options);
    }
  });
  return values;
}

Result<OptimizerSpec> optimizer_spec(const Settings& settings) {
  const auto optimizer = value_of(kOptimizerNames, settings.text("optimizer"));
  const auto schedule = value_of(kRateShapeNames, settings.text("lr-schedule"));
  check(optimizer && schedule, "optimisers and schedules are words of their forms");
  if (const auto fitting = check_hyper_flags(settings, traits_of(*optimizer)); !fitting) {
    return fitting.error();
  }
  if (const auto fitting = check_schedule_flags(settings, *schedule); !fitting) {
    return fitting.error();
  }
  auto epochs = numbers_of(settings, "lr-decay-epochs", 1'000'000);
  auto iterations = numbers_of(settings, "lr-decay-iterations", kMaxCount);
  if (!epochs || !iterations) {
    return epochs ? iterations.error() : epochs.error();
  }
  OptimizerSpec spec{.learning_rate = settings.number("lr"),
                     .scale_by_workers = settings.on("lr-scale-by-workers"),
                     .warmup_epochs = settings.number("warmup-epochs"),
                     .decay_epochs = *std::move(epochs),
                     .momentum = settings.number("momentum"),
                     .weight_decay = settings.number("weight-decay"),
                     .optimizer = *optimizer,
                     .schedule = *schedule,
                     .warmup_iterations = settings.integer("warmup-iterations"),
                     .decay_iterations = *std::move(iterations),
                     .decay_factor = settings.number("lr-decay-factor"),
                     .final_share = settings.number("lr-final"),
                     .by_epoch = settings.text("lr-by") == "epoch",
                     .clip_value = settings.number("clip-value"),
                     .clip_norm = settings.number("clip-norm")};
  if (const Json from = settings.values().at("warmup-from"); from.is_number()) {
    spec.warmup_from = from.get<double>();
  }
  const Json values = settings.values();
  for_each_hyper([&](const char* key, const Form&, const char*, Hyper, auto access) {
    values.at(key).get_to(access(spec.options));
  });
  return spec;
}

}  // namespace sluice::cli
