#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

// One axis of a table of runs: a key, and its values as the user wrote them.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

// All combinations of the values of some axes. The last axis changes fastest.
class Sweep {
 public:
  // Axes such as "hosts=4,16 bandwidth_gbps=1,2", separated by blanks. An error names the axis.
  static Result<Sweep> parse(const std::string& text);

  const std::vector<SweepAxis>& axes() const { return axes_; }
  std::size_t cells() const;
  // One value per axis.
  std::vector<std::string> values(std::size_t cell) const;
  // "hosts=4 bandwidth_gbps=1".
  std::string name(std::size_t cell) const;

 private:
  explicit Sweep(std::vector<SweepAxis> axes) : axes_(std::move(axes)) {}

  std::vector<SweepAxis> axes_;
};

// Calls `run` for every cell on so many threads, 0: one per core; each cell begins when a thread is
// free, in their order. `done` gets the number of finished cells, never two at a time. Rethrows the
// first exception when all threads have ended.
void for_each_cell(std::size_t cells, std::size_t threads,
                   const std::function<void(std::size_t cell)>& run,
                   const std::function<void(std::size_t finished)>& done);

}  // namespace sluice
