#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exchange/gradient_exchange.h"
#include "port.h"

namespace sluice::python {

// What the gate has seen and done.
struct GateCounts {
  std::int64_t stops = 0;  // operators that read a parameter whose update was due
  std::int64_t waits = 0;  // of these, those whose sum was not here yet
  std::int64_t updates = 0;
  std::int64_t early = 0;  // layers that left during a backward pass
  std::int64_t late = 0;   // and after it
  double waited_seconds = 0;
};

// Ties the parameters of one optimizer to an exchange. Hooks after the parameters' gradients send
// them while the backward pass goes on. A gate before all operators has a layer updated when it is
// read next, by a function of the owner. Neither needs the GIL.
//
// Which layers there are is known after the first backward pass: until place() nothing is sent.
// Calls come from one thread at a time.
class Reducer {
 public:
  using Layers = std::vector<std::size_t>;
  // Updates these layers, whose sums are in the buffer.
  using Update = std::function<void(const Layers& layers)>;
  // Called at the end of a backward pass that reached a parameter; may be empty.
  using AfterBackward = std::function<void()>;

  // `scale` is applied to every gradient on its way out.
  Reducer(std::vector<at::Tensor> parameters, double scale, Update update,
          AfterBackward after_backward);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // What has happened until place(): operators read parameters, and gradients were final.
  struct Mark {
    std::size_t parameter = 0;
    bool is_gradient = false;
    double seconds = 0;  // of the monotonic clock
  };
  const std::vector<Mark>& marks() const { return marks_; }
  // By parameter. `active` is the place of a float that counts the processes which take part in a
  // step: see step_aside().
  void place(std::shared_ptr<GradientExchange> exchange, std::vector<Place> places,
             std::int64_t active);
  bool placed() const { return port_.has_value(); }

  // Gradients leave only if it is on: off for passes that accumulate.
  void set_sending(bool on) { sending_ = on; }
  // A gradient leaves after so many backward passes, and later after as many as there were before
  // the last step.
  void expect_passes(std::int64_t passes) { expected_.assign(parameters_.size(), passes); }
  // The gradients so far are void. If some have left already, the step is finished for nothing, and
  // from now on gradients leave only after a call of discard().
  void discard();

  // Backward is over: sends what has not left, and ends the step. The loss is for the record.
  void finish(std::optional<double> loss = {});
  // The step of a process that has no data: zeros. True if some process had data.
  bool step_aside();
  // From now on the sums of the last step are due as updates.
  void arm();
  std::size_t due() const { return all_due_; }  // layers
  // All that are due; throws what an update in the gate threw.
  void update_all();
  // The sums are here, and are not due as updates.
  void wait_all();

  // Puts the sums of these parameters in the place of their gradients, until take_back(). One that
  // no process had a gradient for has none.
  void lend_sums(const std::vector<std::size_t>& parameters);
  void take_back();
  // Makes the sums the gradients of all parameters, as they come.
  void store_sums();
  const GateCounts& counts() const { return counts_; }
  GradientExchange& exchange() const { return port_->exchange(); }

  // For the gate, before an operator on any thread.
  void before_read(const c10::StorageImpl* storage) noexcept;
  bool is_watching() const { return watching_; }
  // For the gate, before an operator of any backward pass.
  void in_backward_pass();

 private:
  class Hook;
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(
      std::declval<const at::Tensor&>()));  // its type differs between versions of LibTorch

  void on_gradient(std::size_t parameter);
  void send(std::size_t parameter, bool zero);
  void send_rest(bool zero, std::optional<double> loss);
  // Watches operators as long as one of them may be of interest.
  void watch();
  void note_read(std::size_t layer);
  void mark(std::size_t parameter, bool is_gradient);
  bool may_send(std::size_t parameter) const;
  void update(std::size_t layer);
  void update_ahead();
  // These layers, whose sums are here.
  void update_now(const Layers& here);
  void store(const std::vector<std::size_t>& parameters);
  void rethrow();

  const std::vector<at::Tensor> parameters_;
  const double scale_;
  const Update update_;
  const AfterBackward after_backward_;
  std::unordered_map<const c10::StorageImpl*, std::vector<std::size_t>> by_storage_;
  std::vector<std::pair<Accumulator, std::uintptr_t>> hooks_;

  std::optional<Port> port_;  // empty: not placed yet
  std::int64_t active_ = 0;
  std::vector<std::pair<std::size_t, at::Tensor>> lent_;  // the gradients that sums stand for
  std::vector<Mark> marks_;

  std::vector<std::int64_t> passes_;    // by parameter, since the last step
  std::vector<std::int64_t> expected_;  // by parameter
  std::vector<bool> sent_;              // by parameter
  std::vector<std::size_t> unsent_;     // by layer: parameters
  std::vector<std::size_t> layer_size_;
  std::vector<bool> due_;  // by layer: the update
  std::size_t all_due_ = 0;
  std::vector<bool> unread_;  // by layer: the forward pass of a recorded step has not come to it
  bool awaits_backward_ = false;  // in a recorded step: its backward pass has not begun
  bool sending_ = true;
  bool watching_ = true;
  bool in_backward_ = false;  // its end has been asked for
  bool cautious_ = false;
  bool discarded_ = false;  // since the last step
  bool updating_ = false;
  std::exception_ptr failure_;  // LibTorch lets none through an observer
  GateCounts counts_;
};

}  // namespace sluice::python
