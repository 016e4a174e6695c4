#include "report/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kRedraw = duration_cast<Duration>(milliseconds(100));
constexpr Duration kPlainInterval = duration_cast<Duration>(seconds(10));

std::string clock_time(double seconds_left) {
  const auto s = static_cast<std::int64_t>(seconds_left + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

std::string render_progress(const ProgressState& state) {
  std::string line =
      fmt::format("epoch {}/{}  step {}/{}", state.epoch, state.epochs, state.step, state.steps);
  if (state.loss) {
    line += fmt::format("  loss {:.4f}", *state.loss);
  }
  if (state.virtual_now) {
    line += fmt::format("  {:.3f} virtual s", to_seconds(*state.virtual_now));
  }
  const double elapsed = to_seconds(state.now);
  if (elapsed > 0 && state.step > 0) {
    const double left = static_cast<double>(state.steps - state.step);
    line += fmt::format("  {:.0f} samples/s  ETA {}", static_cast<double>(state.samples) / elapsed,
                        clock_time(elapsed / static_cast<double>(state.step) * left));
  }
  return line;
}

void Progress::update(const ProgressState& state) {
  latest_ = state;
  if (is_due()) {
    show();
  }
}

void Progress::finish() {
  if (latest_.step != shown_.step) {
    show();
  }
  if (style_ == Style::kTerminal && shown_.step > 0) {
    out_ << '\n' << std::flush;
  }
}

bool Progress::is_due() const {
  if (style_ == Style::kTerminal) {
    return shown_.step == 0 || latest_.now - shown_.now >= kRedraw;
  }
  const auto tenth = [](const ProgressState& s) {
    return s.steps == 0 ? 0 : s.step * 10 / s.steps;
  };
  return tenth(latest_) != tenth(shown_) || latest_.now - shown_.now >= kPlainInterval;
}

void Progress::show() {
  std::string line = render_progress(latest_);
  if (style_ == Style::kTerminal) {
    line.resize(std::min(line.size(), width_));
    out_ << "\r\x1b[K" << line << std::flush;
  } else {
    out_ << line << "\n" << std::flush;
  }
  shown_ = latest_;
}

}  // namespace sluice
