#include "drivers/processes/step_reports.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string_view>

namespace sluice {
namespace {

// A loss is sent as its bits, since it may be NaN, or as a dash if there is none.
constexpr const char* kNoLoss = "-";

// Nothing if the text is not a loss.
std::optional<std::optional<double>> loss_of(std::string_view word) {
  if (word == kNoLoss) {
    return std::optional<double>();
  }
  std::uint64_t bits = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), bits);
  if (fault != std::errc{} || end != word.data() + word.size()) {
    return std::nullopt;
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

std::string encode(const std::vector<StepReport>& steps, Time now) {
  std::string text;
  for (const StepReport& step : steps) {
    const std::string loss =
        step.loss ? std::to_string(std::bit_cast<std::uint64_t>(*step.loss)) : kNoLoss;
    text += fmt::format("{} {} {} {} ", step.rank, step.iteration, loss, (now - step.at).count());
  }
  return text;
}

Result<std::vector<StepReport>> decode_steps(const std::string& text, std::size_t workers,
                                             Time now) {
  const Error malformed("a step report must be four numbers of this run");
  std::vector<StepReport> steps;
  std::istringstream words(text);
  for (StepReport step; words >> std::ws && !words.eof(); steps.push_back(step)) {
    std::string loss;
    Duration::rep ago = 0;
    words >> step.rank >> step.iteration >> loss >> ago;
    if (!words || step.rank >= workers || step.iteration < 0 || ago < 0 || ago > kForever.count()) {
      return malformed;
    }
    const auto value = loss_of(loss);
    if (!value) {
      return malformed;
    }
    step.loss = *value;
    step.at = now - Duration(ago);
  }
  return steps;
}

}  // namespace sluice
