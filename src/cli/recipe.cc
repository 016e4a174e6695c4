#include "cli/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::cli {

const Recipe* find_recipe(std::string_view name) {
  static const std::array kRecipes{Recipe{.name = "analysis",  // VI-A
                                          .epochs = 90,
                                          .batch = 128,
                                          .lr = 0.05,
                                          .lr_scale_by_workers = true,
                                          .warmup_epochs = 5,
                                          .lr_decay_epochs = {30, 60, 80},
                                          .momentum = 0.9,
                                          .weight_decay = 1e-4}};
  const auto* found = std::ranges::find(kRecipes, name, &Recipe::name);
  return found == kRecipes.end() ? nullptr : &*found;
}

Json to_values(const Recipe& recipe, std::int64_t epochs) {
  const double part = static_cast<double>(epochs) / static_cast<double>(recipe.epochs);
  std::vector<std::int64_t> decay;
  for (const std::int64_t epoch : recipe.lr_decay_epochs) {
    decay.push_back(std::max<std::int64_t>(1, std::llround(static_cast<double>(epoch) * part)));
  }
  return {{"epochs", recipe.epochs},
          {"batch", recipe.batch},
          {"lr", recipe.lr},
          {"lr-scale-by-workers", recipe.lr_scale_by_workers},
          {"warmup-epochs", recipe.warmup_epochs * part},
          {"lr-decay-epochs", fmt::format("{}", fmt::join(decay, ","))},
          {"momentum", recipe.momentum},
          {"weight-decay", recipe.weight_decay}};
}

}  // namespace sluice::cli
