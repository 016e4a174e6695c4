#include "report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice {
namespace {

constexpr double kRoughTicks = 5;
constexpr double kRounding = 1e-9;  // of a step, which sums of doubles may miss

// 1, 2 or 5 times a power of ten, and at least this.
double round_step(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double times = rough / power;
  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

std::vector<double> logarithmic_ticks(double min, double max) {
  const double decades = std::log10(max / min);
  // Few decades have ticks between the powers of ten, many have one at every so many.
  const std::vector<double> steps = decades <= 3   ? std::vector{1.0, 2.0, 5.0}
                                    : decades <= 5 ? std::vector{1.0, 3.0}
                                                   : std::vector{1.0};
  const double every = std::max(1.0, std::ceil(decades / 10));
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(min)); power <= std::log10(max) + 1; power += every) {
    for (const double step : steps) {
      const double tick = step * std::pow(10, power);
      if (tick >= min * (1 - kRounding) && tick <= max * (1 + kRounding)) {
        ticks.push_back(tick);
      }
    }
  }
  return ticks;
}

}  // namespace

Scale Scale::over(double min, double max, Kind kind) {
  check(std::isfinite(min) && std::isfinite(max) && min <= max, "a scale has finite ends");
  Scale scale;
  if (kind == Kind::kAuto && min > 0 && max > 10 * min) {
    scale.min_ = min;
    scale.max_ = max;
    return scale;
  }
  if (kind == Kind::kAuto || kind == Kind::kFromZero) {
    min = std::min(min, 0.0);
    max = std::max(max, 0.0);
  }
  // Room around a single value; doubles tell its ticks apart.
  const double least = std::max(std::max(std::abs(min), std::abs(max)) * 1e-6, 1e-12);
  if (max - min < least) {
    const double half = std::max(std::abs(max) / 2, least);
    min = min == 0 ? 0 : min - half;
    max += half;
  }
  scale.step_ = round_step((max - min) / kRoughTicks);
  const bool exact = kind == Kind::kExact;
  scale.min_ = exact ? min : std::floor(min / scale.step_ + kRounding) * scale.step_;
  scale.max_ = exact ? max : std::ceil(max / scale.step_ - kRounding) * scale.step_;
  return scale;
}

double Scale::place(double value) const {
  const double place =
      step_ == 0 ? std::log(value / min_) / std::log(max_ / min_) : (value - min_) / (max_ - min_);
  return std::clamp(place, 0.0, 1.0);
}

std::vector<double> Scale::ticks() const {
  if (step_ == 0) {
    return logarithmic_ticks(min_, max_);
  }
  std::vector<double> ticks;
  const double last = std::floor(max_ / step_ + kRounding);
  for (double i = std::ceil(min_ / step_ - kRounding); i <= last; ++i) {
    ticks.push_back(std::clamp(i * step_, min_, max_) + 0.0);  // 0 instead of -0
  }
  return ticks;
}

std::string tick_label(double value) {
  const double size = std::abs(value);
  if (size >= 1e15) {
    return fmt::format("{:.3g}", value);
  }
  if (size >= 1e9) {
    return fmt::format("{:g}G", value / 1e9);
  }
  if (size >= 1e6) {
    return fmt::format("{:g}M", value / 1e6);
  }
  return size >= 1e4 ? fmt::format("{:g}k", value / 1e3) : fmt::format("{:g}", value);
}

}  // namespace sluice
