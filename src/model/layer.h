#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/range.h"

namespace sluice {

// A part of the parameters that is a matrix, row by row: a tensor, its first dimension by all
// others.
struct Matrix {
  std::int64_t begin = 0;  // of its range
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  Range range() const { return {begin, begin + rows * columns}; }
  // What its factors of this rank take.
  std::int64_t factored(std::int64_t rank) const { return (rows + columns) * rank; }

  bool operator==(const Matrix&) const = default;
};

// A layer owns a range of the flat parameter buffer. Layers stand in the order of first use by the
// forward pass; that order is also their priority, the first being the most urgent.
struct Layer {
  std::string name;
  Range range;
  Matrix matrix = {};  // its largest tensor, if it is known and has several rows and columns
};

// The layers begin ... end-1, in forward order, whose gradients travel as one message.
struct LayerGroup {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const LayerGroup&) const = default;
};

// The layers side by side in one flat buffer.
std::vector<Layer> lay_out(const std::vector<std::string>& names,
                           const std::vector<std::int64_t>& params);

std::int64_t total_params(const std::vector<Layer>& layers);

}  // namespace sluice
