#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sluice {

// An array of NumPy, in row-major order.
struct NpyArray {
  std::vector<std::int64_t> shape;
  std::variant<std::vector<float>, std::vector<std::int64_t>> values;
};

// Reads a file that numpy.save() wrote, of type float32 or float64, which become floats, or int32
// or int64. Errors name the file, what is wrong with it, and what to do.
Result<NpyArray> read_npy(const std::string& path);

}  // namespace sluice
