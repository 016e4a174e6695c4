#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/page/page.h"
#include "report/page/run_data.h"
#include "report/spread.h"

namespace sluice {

// Runs that differ in their seed only.
struct SeededRuns {
  std::string name;
  std::vector<RunData> runs;  // at least one
};

using Curve = std::vector<std::pair<double, double>>;  // in order of x

// The curve at x, on the straight line between two points; none outside the curve.
std::optional<double> value_at(const Curve& curve, double x);

// The loss of the training steps, each as the mean of the last twentieth of all steps up to it; and
// the accuracy of the evaluations, in per cent. By samples or by seconds.
enum class By : bool { kSamples, kSeconds };
Curve loss_curve(const RunData& run, By by);
Curve accuracy_curve(const RunData& run, By by);

// Figures of the runs of one name, without those that diverged. What not all of the others have is
// not there.
struct ComparedFigures {
  std::string name;
  std::size_t runs = 0;  // all of them
  std::size_t diverged = 0;
  std::optional<Spread> iteration_ms = {};
  std::optional<Spread> megabytes = {};  // per iteration, sent by all hosts
  std::optional<Spread> link_percent = {};
  std::optional<Spread> seconds = {};  // until the end of the run
  std::optional<Spread> loss_at_samples = {};
  std::optional<Spread> accuracy_at_samples = {};
  std::optional<Spread> loss_at_seconds = {};
  std::optional<Spread> accuracy_at_seconds = {};
};

// All runs at the largest number of samples, and at the latest time, that all of them have reached
// that did not diverge.
struct Comparison {
  double samples = 0;
  double seconds = 0;
  std::vector<ComparedFigures> rows;
};
Comparison compare(const std::vector<SeededRuns>& all);

// Where the columns of its table are: "S: after 1920 samples, T: after 1.5 s".
std::string marks_of(const Comparison& comparison, bool is_virtual);
// A row for each name, and a column for each figure that some name has.
PageTable table_of(const Comparison& comparison, bool is_virtual);

// The report: figures, breakdown, and all curves as means over the seeds, with their smallest and
// largest values as bands.
Page seeds_page(const std::vector<SeededRuns>& all, const std::string& subtitle);

}  // namespace sluice
