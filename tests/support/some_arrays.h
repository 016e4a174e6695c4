#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice {

// The bytes of a file of numpy.save(), with a header of this type.
template <class Value>
std::string npy_bytes(const std::string& type, const std::vector<std::int64_t>& shape,
                      const std::vector<Value>& values) {
  const std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}\n", type,
                  fmt::join(shape, ", "));
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() % 256);
  bytes += static_cast<char>(header.size() / 256);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
  return bytes;
}

template <class Value>
std::string npy_bytes(const std::vector<std::int64_t>& shape, const std::vector<Value>& values) {
  const char* type = std::is_same_v<Value, float>    ? "<f4"
                     : std::is_same_v<Value, double> ? "<f8"
                     : sizeof(Value) == 4            ? "<i4"
                                                     : "<i8";
  return npy_bytes(type, shape, values);
}

}  // namespace sluice
