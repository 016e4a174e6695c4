#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

// One axis of a table of runs: a key, and its values as the user wrote them.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

// All combinations of the values of some axes, in which the last axis changes fastest; or several
// such tables, one after the other.
class Sweep {
 public:
  // Axes such as "hosts=4,16 bandwidth_gbps=1,2", separated by blanks, and tables by semicolons. An
  // error names the axis.
  static Result<Sweep> parse(const std::string& text);

  // Of all tables, with all values that an axis has in some of them.
  const std::vector<SweepAxis>& axes() const { return axes_; }
  std::size_t cells() const { return values_.size(); }
  // One value per axis; empty if the cell's table has no such axis.
  const std::vector<std::string>& values(std::size_t cell) const { return values_[cell]; }
  // The axes of the cell's table.
  std::map<std::string, std::string> values_by_key(std::size_t cell) const;
  // "hosts=4 bandwidth_gbps=1".
  std::string name(std::size_t cell) const;

  // Each cell with each of `more`, which change fastest and must have other axes.
  Result<Sweep> each_with(const Sweep& more) const;

  // Cells that differ in one axis only.
  struct Group {
    std::vector<std::string> values;  // of the other axes
    std::vector<std::size_t> cells;   // in their order
  };
  // In the order of their first cells. Without such an axis every cell is a group.
  std::vector<Group> groups_over(const std::string& key) const;
  // The axes that these groups have.
  std::vector<SweepAxis> axes_without(const std::string& key) const;

 private:
  // All combinations of these axes.
  void add_table(const std::vector<SweepAxis>& axes);

  std::vector<SweepAxis> axes_;
  std::vector<std::vector<std::string>> values_;  // by cell
};

// The whole of a text as a number.
std::optional<double> number_in(const std::string& text);

// "p3, hosts 4": a line of a picture. `values` are of these axes; empty ones are left out.
std::string line_name(const std::vector<SweepAxis>& axes, const std::vector<std::string>& values);

// The same of a cell, with only what distinguishes it from the others.
std::string distinct_name(const Sweep& sweep, std::size_t cell);

// Calls `run` for every cell on so many threads, 0: one per core; each cell begins when a thread is
// free, in their order. `done` gets the number of finished cells, never two at a time. Rethrows the
// first exception when all threads have ended.
void for_each_cell(std::size_t cells, std::size_t threads,
                   const std::function<void(std::size_t cell)>& run,
                   const std::function<void(std::size_t finished)>& done);

}  // namespace sluice
