#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "base/range.h"

namespace sluice {

// Packs the chunks of a model's gradients on the device where they are. Everything is queued on the
// current stream.
class DevicePacker {
 public:
  virtual ~DevicePacker() = default;

  // Packs chunks, which ascend, on their way into this iteration, and copies their codes to the
  // host's gradients, each to the beginning of its chunk. `layers` are those whose gradients have
  // become final since the last call.
  virtual void send(std::span<const Range> layers, std::span<const std::size_t> chunks,
                    const at::Tensor& host, Iteration iteration) = 0;
  // The copies of the oldest call of send() have arrived: the codes are to be in their places when
  // this returns.
  virtual void deliver(const at::Tensor& /*host*/) {}
  // Takes in what came back for the chunks from `first` up to `last`, and lies where their codes
  // lay.
  virtual void take_back(std::size_t first, std::size_t last, const at::Tensor& host) = 0;
  // With codec powersgd, as of Learner; ends before the copies to the host do.
  virtual void find_right_factors(std::span<const Range> /*matrices*/,
                                  const at::Tensor& /*host*/) const {
    fail_check("only factors depend on a sum");
  }
  // Whether is_finite() tells, after deliver(), if all values of a layer's gradient were finite.
  virtual bool finds_not_finite() const { return false; }
  virtual bool is_finite(const Range& /*layer*/) const { return true; }
  // Fewer values are not worth the time that it takes to queue a call of send().
  virtual std::int64_t worth_sending() const = 0;
  // What later gradients are packed with.
  virtual std::vector<at::Tensor> state() const = 0;
};

inline at::Tensor view_in(const at::Tensor& flat, const Range& range) {
  return flat.narrow(0, range.begin, range.size());
}

// The beginning of a chunk in the host's gradients, as bytes.
inline at::Tensor code_in(const at::Tensor& host, const Range& chunk, std::int64_t bytes) {
  const auto begin = chunk.begin * static_cast<std::int64_t>(sizeof(float));
  return host.view(at::kByte).narrow(0, begin, bytes);
}

// Calls take(first, end) for chunks that are neighbours and, so that they make rows, of equal
// length, since many small operations take long to queue.
template <class Take>
void for_rows(std::span<const Range> chunks, std::size_t first, std::size_t last, Take take) {
  while (first < last) {
    std::size_t end = first + 1;
    while (end < last && chunks[end].size() == chunks[first].size() &&
           chunks[end].begin == chunks[end - 1].end) {
      ++end;
    }
    take(first, end);
    first = end;
  }
}

// The values of such chunks, one chunk per row.
inline at::Tensor rows_of(const at::Tensor& flat, std::span<const Range> chunks, std::size_t first,
                          std::size_t end) {
  const auto count = static_cast<std::int64_t>(end - first);
  const std::int64_t length = chunks[first].size();
  return flat.narrow(0, chunks[first].begin, count * length).view({count, length});
}

// Calls take(first, end) for numbers that follow each other.
template <class Take>
void for_runs(std::span<const std::size_t> numbers, Take take) {
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    take(numbers[i], numbers[end - 1] + 1);
    i = end;
  }
}

}  // namespace sluice
