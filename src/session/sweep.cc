#include "session/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "drivers/realtime/work_threads.h"

namespace sluice {
namespace {

// A million runs would take days.
constexpr std::size_t kMaxCells = 1'000'000;

Result<SweepAxis> parse_axis(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0) {
    return Error(fmt::format("{}: expected KEY=VALUE,VALUE,... such as hosts=4,16,64", text));
  }
  SweepAxis axis{.key = text.substr(0, sign), .values = {}};
  for (std::string& value : split_list(text.substr(sign + 1))) {
    if (value.empty()) {
      return Error(fmt::format("{}: a value is missing", text));
    }
    if (std::ranges::find(axis.values, value) != axis.values.end()) {
      return Error(fmt::format("{}: {} occurs twice", text, value));
    }
    axis.values.push_back(std::move(value));
  }
  if (axis.values.empty()) {
    return Error(fmt::format("{}: a value is missing", text));
  }
  return axis;
}

// One table. It may have so many cells.
Result<std::vector<SweepAxis>> parse_table(const std::string& text, std::size_t max_cells) {
  std::vector<SweepAxis> axes;
  std::size_t cells = 1;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    auto axis = parse_axis(word);
    if (!axis) {
      return axis.error();
    }
    if (std::ranges::find(axes, axis->key, &SweepAxis::key) != axes.end()) {
      return Error(fmt::format("{}: occurs twice; list all of its values at once", axis->key));
    }
    cells *= axis->values.size();
    if (cells > max_cells) {
      return Error(fmt::format("{}: with it there are more than {} runs", axis->key, kMaxCells));
    }
    axes.push_back(*std::move(axis));
  }
  if (axes.empty()) {
    return Error("expected KEY=VALUE,VALUE,... such as hosts=4,16,64");
  }
  return axes;
}

}  // namespace

Result<Sweep> Sweep::parse(const std::string& text) {
  Sweep sweep;
  std::istringstream tables(text);
  std::string table;
  do {
    table.clear();
    std::getline(tables, table, ';');
    const auto axes = parse_table(table, kMaxCells - sweep.cells());
    if (!axes) {
      return axes.error();
    }
    sweep.add_table(*axes);
  } while (!tables.eof());
  return sweep;
}

void Sweep::add_table(const std::vector<SweepAxis>& axes) {
  for (const SweepAxis& axis : axes) {
    auto known = std::ranges::find(axes_, axis.key, &SweepAxis::key);
    if (known == axes_.end()) {
      known = axes_.insert(axes_.end(), {.key = axis.key, .values = {}});
    }
    for (const std::string& value : axis.values) {
      if (std::ranges::find(known->values, value) == known->values.end()) {
        known->values.push_back(value);
      }
    }
  }
  for (std::vector<std::string>& values : values_) {
    values.resize(axes_.size());
  }
  std::vector<std::vector<std::string>> cells{std::vector<std::string>(axes_.size())};
  for (const SweepAxis& axis : axes) {
    const auto at = static_cast<std::size_t>(std::ranges::find(axes_, axis.key, &SweepAxis::key) -
                                             axes_.begin());
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& cell : cells) {
      for (const std::string& value : axis.values) {
        longer.push_back(cell);
        longer.back()[at] = value;
      }
    }
    cells = std::move(longer);
  }
  values_.insert(values_.end(), cells.begin(), cells.end());
}

Result<Sweep> Sweep::each_with(const Sweep& more) const {
  Sweep product = *this;
  for (const SweepAxis& axis : more.axes_) {
    if (std::ranges::find(axes_, axis.key, &SweepAxis::key) != axes_.end()) {
      return Error(fmt::format("{}: is an axis of the sweep already", axis.key));
    }
    product.axes_.push_back(axis);
  }
  product.values_.clear();
  for (const std::vector<std::string>& own : values_) {
    for (const std::vector<std::string>& further : more.values_) {
      product.values_.push_back(own);
      product.values_.back().insert(product.values_.back().end(), further.begin(), further.end());
    }
  }
  return product;
}

std::map<std::string, std::string> Sweep::values_by_key(std::size_t cell) const {
  std::map<std::string, std::string> by_key;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (const std::string& value = values(cell)[a]; !value.empty()) {
      by_key[axes_[a].key] = value;
    }
  }
  return by_key;
}

std::string Sweep::name(std::size_t cell) const {
  std::string name;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (const std::string& value = values(cell)[a]; !value.empty()) {
      name += fmt::format("{}{}={}", name.empty() ? "" : " ", axes_[a].key, value);
    }
  }
  return name;
}

std::vector<SweepAxis> Sweep::axes_without(const std::string& key) const {
  std::vector<SweepAxis> others = axes_;
  std::erase_if(others, [&](const SweepAxis& axis) { return axis.key == key; });
  return others;
}

std::vector<Sweep::Group> Sweep::groups_over(const std::string& key) const {
  const auto axis = std::ranges::find(axes_, key, &SweepAxis::key);
  std::vector<Group> groups;
  for (std::size_t cell = 0; cell < cells(); ++cell) {
    std::vector<std::string> others = values(cell);
    if (axis != axes_.end()) {
      others.erase(others.begin() + (axis - axes_.begin()));
    }
    auto group = std::ranges::find(groups, others, &Group::values);
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {.values = std::move(others), .cells = {}});
    }
    group->cells.push_back(cell);
  }
  return groups;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

std::string line_name(const std::vector<SweepAxis>& axes, const std::vector<std::string>& values) {
  std::string name;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (values[a].empty()) {
      continue;
    }
    name += fmt::format("{}{}", name.empty() ? "" : ", ",
                        number_in(values[a]) ? axes[a].key + " " + values[a] : values[a]);
  }
  return name;
}

std::string distinct_name(const Sweep& sweep, std::size_t cell) {
  std::vector<std::string> values = sweep.values(cell);
  for (std::size_t a = 0; a < values.size(); ++a) {
    if (sweep.axes()[a].values.size() == 1) {
      values[a].clear();
    }
  }
  return line_name(sweep.axes(), values);
}

void for_each_cell(std::size_t cells, std::size_t threads,
                   const std::function<void(std::size_t)>& run,
                   const std::function<void(std::size_t)>& done) {
  std::mutex mutex;
  std::size_t finished = 0;
  WorkThreads pool(threads_or_cores(threads));
  for (std::size_t cell = 0; cell < cells; ++cell) {
    pool.start([&, cell] {
      run(cell);
      const std::lock_guard lock(mutex);
      done(++finished);
    });
  }
  pool.finish();
}

}  // namespace sluice
