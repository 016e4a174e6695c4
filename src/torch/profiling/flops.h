#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <functional>

namespace sluice {

// Floating-point operations of a convolution or a matrix product; an addition and a multiplication
// count as two. 0 for all other operators: they are small by comparison, or only call one of these.
std::int64_t flops_of(const at::RecordFunction& call);

// The sum over all operators that `work` runs on this thread. No other thread may compute
// meanwhile: oneDNN is off for all threads.
std::int64_t count_flops(const std::function<void()>& work);

// oneDNN has operators for several products, such as a whole LSTM, and where it is slow it takes
// several times as long.
class WithoutOneDnn {
 public:
  WithoutOneDnn();
  ~WithoutOneDnn();
  WithoutOneDnn(const WithoutOneDnn&) = delete;
  WithoutOneDnn& operator=(const WithoutOneDnn&) = delete;

 private:
  bool before_;
};

}  // namespace sluice
