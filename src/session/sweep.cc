#include "session/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <sstream>

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
  std::istringstream list(text.substr(sign + 1));
  for (std::string value; std::getline(list, value, ',');) {
    if (value.empty()) {
      return Error(fmt::format("{}: a value is empty", text));
    }
    if (std::ranges::find(axis.values, value) != axis.values.end()) {
      return Error(fmt::format("{}: {} occurs twice", text, value));
    }
    axis.values.push_back(std::move(value));
  }
  if (axis.values.empty() || text.ends_with(',')) {
    return Error(fmt::format("{}: a value is missing", text));
  }
  return axis;
}

}  // namespace

Result<Sweep> Sweep::parse(const std::string& text) {
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
    if (cells > kMaxCells) {
      return Error(fmt::format("{}: with it there are more than {} runs", axis->key, kMaxCells));
    }
    axes.push_back(*std::move(axis));
  }
  if (axes.empty()) {
    return Error("expected KEY=VALUE,VALUE,... such as hosts=4,16,64");
  }
  return Sweep(std::move(axes));
}

std::size_t Sweep::cells() const {
  std::size_t cells = 1;
  for (const SweepAxis& axis : axes_) {
    cells *= axis.values.size();
  }
  return cells;
}

std::vector<std::string> Sweep::values(std::size_t cell) const {
  std::vector<std::string> values(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const std::vector<std::string>& all = axes_[a].values;
    values[a] = all[cell % all.size()];
    cell /= all.size();
  }
  return values;
}

std::string Sweep::name(std::size_t cell) const {
  std::string name;
  const std::vector<std::string> chosen = values(cell);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    name += fmt::format("{}{}={}", a == 0 ? "" : " ", axes_[a].key, chosen[a]);
  }
  return name;
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
