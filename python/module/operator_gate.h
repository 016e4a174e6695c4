#pragma once

#include <ATen/record_function.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::python {

class Reducer;

// Shows all reducers that watch the inputs of every operator before it runs, on all threads.
// LibTorch takes plain functions as observers, so there is one gate in a process.
class OperatorGate {
 public:
  static OperatorGate& of_process();

  void add(Reducer& reducer);
  void remove(Reducer& reducer);
  // Some reducer has begun to watch, or has ceased. Nobody pays for the gate while none does.
  void watch();

 private:
  static std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call);

  std::vector<Reducer*> reducers_;  // changed and read under the GIL, or in one thread
  std::optional<at::CallbackHandle> handle_;
};

}  // namespace sluice::python
