#include "report/chart_style.h"

#include <fmt/format.h>

#include <array>

namespace sluice {
namespace {

constexpr std::array kLight{"#2b6cb0", "#d1495b", "#2a8a57", "#b7791f",
                            "#7b4fa3", "#178a9e", "#c05621", "#64707d"};
constexpr std::array kDark{"#7fb2ee", "#ff8e9b", "#6bd39b", "#e8bd5b",
                           "#c5a0ea", "#62d0e0", "#f5a06c", "#a9b4c0"};
static_assert(kLight.size() == kDark.size());

std::string colours(const std::array<const char*, kLight.size()>& of) {
  std::string css;
  for (std::size_t i = 0; i < of.size(); ++i) {
    css += fmt::format(".s{}{{color:{}}}", i, of[i]);
  }
  return css;
}

}  // namespace

std::string chart_css() {
  return ".chart text{font:12px system-ui,sans-serif;fill:#5a6673}"
         ".chart .grid{stroke:#dfe4ea}"
         ".chart .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
         ".chart .dot,.chart .bar{fill:currentColor}"
         ".chart .area{fill:currentColor;opacity:.18}" +
         colours(kLight) +
         "@media (prefers-color-scheme:dark){"
         ".chart text{fill:#a3aebb}.chart .grid{stroke:#39424d}" +
         colours(kDark) + "}";
}

std::string series_class(std::size_t index) { return fmt::format("s{}", index % kLight.size()); }

std::string series_dashes(std::size_t index) {
  const std::size_t round = index / kLight.size();
  return round == 0 ? "" : fmt::format(" stroke-dasharray=\"{} 3\"", 8 / round + 1);
}

}  // namespace sluice
