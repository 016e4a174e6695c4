#include "report/time_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "report/chart_style.h"
#include "report/markup.h"
#include "report/scale.h"

namespace sluice {
namespace {

constexpr double kLaneLeft = 8;
constexpr double kLaneWidth = 704;
constexpr double kLaneRow = 50;  // a name and its spans
constexpr double kSpansTop = 28;
constexpr double kSpansHeight = 16;
constexpr double kVisible = 0.4;  // a gap of this width
constexpr double kNamed = 2;      // wider spans have a name to point at

double place_of(const TimeLine& chart, double time) {
  return kLaneLeft + kLaneWidth * std::clamp(time / chart.length, 0.0, 1.0);
}

// Where a span is drawn. Its name is empty if it stands for several.
struct Drawn {
  double left;
  double right;
  std::string name;
};

std::vector<Drawn> drawn_spans(const TimeLine& chart, const TimeLine::Lane& lane,
                               std::size_t kind) {
  std::vector<Drawn> all;
  for (const TimeLine::Span& span : lane.spans) {
    if (span.kind != kind || span.end < 0 || span.begin > chart.length) {
      continue;
    }
    const double left = place_of(chart, span.begin);
    const double right = place_of(chart, span.end);
    const bool narrow = right - left < kNamed;
    if (!all.empty() && left - all.back().right < kVisible && (narrow || all.back().name.empty())) {
      all.back().right = std::max(all.back().right, right);
      all.back().name.clear();
    } else {
      all.push_back({left, right, narrow ? "" : span.name});
    }
  }
  return all;
}

std::string lane_row(const TimeLine& chart, std::size_t row) {
  const TimeLine::Lane& lane = chart.lanes[row];
  const double top = kLaneRow * static_cast<double>(row);
  std::string svg = fmt::format(
      "<text class=\"name\" x=\"{0}\" y=\"{1}\">{2}</text><line class=\"grid\" x1=\"{0}\" "
      "y1=\"{3}\" x2=\"{4}\" y2=\"{3}\"/>",
      kLaneLeft, top + kSpansTop - 5, escaped(lane.name), top + kSpansTop + kSpansHeight,
      kLaneLeft + kLaneWidth);
  for (std::size_t kind = 0; kind < chart.kinds.size(); ++kind) {
    const std::vector<Drawn> spans = drawn_spans(chart, lane, kind);
    if (spans.empty()) {
      continue;
    }
    svg += fmt::format("<g class=\"{}\">", series_class(kind));
    for (const Drawn& span : spans) {
      svg += fmt::format(
          "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\"",
          span.left, top + kSpansTop, std::max(span.right - span.left, kVisible), kSpansHeight);
      svg +=
          span.name.empty() ? "/>" : fmt::format("><title>{}</title></rect>", escaped(span.name));
    }
    svg += "</g>\n";
  }
  return svg;
}

std::string time_axis(const TimeLine& chart) {
  const double bottom = kLaneRow * static_cast<double>(chart.lanes.size());
  std::string svg;
  for (const double tick : Scale::over(0, chart.length, Scale::Kind::kExact).ticks()) {
    const double x = place_of(chart, tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1}\"/>"
        "<text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"{3}\">{4}{5}</text>",
        x, bottom, bottom + 18,
        tick == 0                           ? "start"
        : x > kLaneLeft + kLaneWidth * 0.97 ? "end"
                                            : "middle",
        tick_label(tick), tick == 0 ? "" : " " + escaped(chart.unit));
  }
  return svg + "\n";
}

// Spans that are closer than this part of the time line are one in a file.
constexpr double kResolution = 1.0 / 2000;

std::vector<TimeLine::Span> joined(const TimeLine& chart, const TimeLine::Lane& lane) {
  const double gap = chart.length * kResolution;
  std::vector<TimeLine::Span> all;
  std::vector<std::optional<std::size_t>> latest(chart.kinds.size());  // of each kind
  for (const TimeLine::Span& span : lane.spans) {
    auto& before = latest[span.kind];
    const bool narrow = span.end - span.begin < gap;
    if (before && narrow && span.begin - all[*before].end < gap &&
        all[*before].end - all[*before].begin < 20 * gap) {
      all[*before].end = std::max(all[*before].end, span.end);
      all[*before].name.clear();
    } else {
      before = all.size();
      all.push_back(span);
    }
  }
  return all;
}

std::optional<TimeLine::Span> span_from(const nlohmann::json& json, std::size_t kinds) {
  const bool is_span = json.is_array() && json.size() == 4 && json[0].is_number() &&
                       json[1].is_number() && json[2].is_number_unsigned() && json[3].is_string();
  if (!is_span || json[2].get<std::size_t>() >= kinds) {
    return std::nullopt;
  }
  return TimeLine::Span{json[0], json[1], json[2], json[3]};
}

std::optional<TimeLine::Lane> lane_from(const nlohmann::json& json, std::size_t kinds) {
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string() ||
      !json.contains("spans") || !json["spans"].is_array()) {
    return std::nullopt;
  }
  TimeLine::Lane lane{.name = json["name"], .spans = {}};
  for (const auto& span : json["spans"]) {
    auto read = span_from(span, kinds);
    if (!read) {
      return std::nullopt;
    }
    lane.spans.push_back(*std::move(read));
  }
  return lane;
}

}  // namespace

nlohmann::ordered_json to_json(const TimeLine& chart) {
  auto lanes = nlohmann::ordered_json::array();
  for (const TimeLine::Lane& lane : chart.lanes) {
    auto spans = nlohmann::ordered_json::array();
    for (const TimeLine::Span& span : joined(chart, lane)) {
      spans.push_back({span.begin, span.end, span.kind, span.name});
    }
    lanes.push_back({{"name", lane.name}, {"spans", spans}});
  }
  return {{"title", chart.title},
          {"unit", chart.unit},
          {"kinds", chart.kinds},
          {"length", chart.length},
          {"lanes", lanes}};
}

Result<TimeLine> time_line_from(const nlohmann::json& json) {
  const Error bad("is not a time line as Sluice writes them");
  TimeLine chart;
  try {
    chart = {.title = json.at("title"),
             .unit = json.at("unit"),
             .kinds = json.at("kinds"),
             .length = json.at("length"),
             .lanes = {}};
    for (const auto& lane : json.at("lanes")) {
      auto read = lane_from(lane, chart.kinds.size());
      if (!read) {
        return bad;
      }
      chart.lanes.push_back(*std::move(read));
    }
  } catch (const nlohmann::json::exception&) {
    return bad;
  }
  return chart;
}

std::vector<std::pair<double, double>> busy_shares(const TimeLine& chart,
                                                   const TimeLine::Lane& lane, std::size_t bins) {
  const double width = chart.length / static_cast<double>(bins);
  std::vector<std::pair<double, double>> shares;
  for (std::size_t b = 0; b < bins; ++b) {
    shares.emplace_back((static_cast<double>(b) + 0.5) * width, 0.0);
  }
  if (chart.length <= 0) {
    return shares;
  }
  double covered = 0;  // spans may overlap
  for (const TimeLine::Span& span : lane.spans) {
    double at = std::max({span.begin, covered, 0.0});
    const double end = std::min(span.end, chart.length);
    covered = std::max(covered, end);
    while (at < end) {
      const auto bin = std::min(static_cast<std::size_t>(at / width), bins - 1);
      const double until =
          bin + 1 == bins ? end : std::min(end, width * static_cast<double>(bin + 1));
      shares[bin].second += (until - at) / width;
      if (until <= at) {
        break;  // too short for a double
      }
      at = until;
    }
  }
  return shares;
}

std::string to_inline_svg(const TimeLine& chart) {
  std::string svg = fmt::format(
      "<svg class=\"chart wide\" role=\"img\" viewBox=\"0 0 {} {}\">\n<title>{}</title><desc>{} "
      "lanes over {:.4g} {}</desc>\n",
      2 * kLaneLeft + kLaneWidth, kLaneRow * static_cast<double>(chart.lanes.size()) + 26,
      escaped(chart.title), chart.lanes.size(), chart.length, escaped(chart.unit));
  if (chart.length > 0) {
    svg += time_axis(chart);
    for (std::size_t row = 0; row < chart.lanes.size(); ++row) {
      svg += lane_row(chart, row);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace sluice
