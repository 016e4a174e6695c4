#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace sluice {

// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

// The bytes of an IDX file: two zero bytes, the type of the elements, the number of dimensions,
// each dimension as a big-endian 32-bit number, then the elements in row-major order.
struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

// Reads one IDX file, plain or gzip. Errors name the file and the (unpacked) offset.
Result<IdxArray> read_idx(const std::string& path, std::size_t dimensions);

// Reads the four files of MNIST or a similar data set, plain or with the suffix .gz, as grey images
// of shape 1 x rows x columns with standardised pixels. Only Debian's package has class names.
Result<DataSplit> read_idx_folder(const std::string& folder);

}  // namespace sluice
