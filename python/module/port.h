#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exchange/gradient_exchange.h"
#include "staging.h"

namespace sluice::python {

// Where the values of a parameter are in the buffer of an exchange.
struct Place {
  std::size_t layer = 0;
  std::int64_t offset = 0;
  std::int64_t flag = 0;  // one float that counts the processes with a gradient
};

// Between the tensors of parameters, on any device, and the buffer of an exchange. None of its
// operators is seen by a gate. Calls come from one thread at a time.
class Port {
 public:
  // Places are by parameter. `scale` is applied to every gradient on its way out.
  Port(const std::vector<at::Tensor>& parameters, double scale,
       std::shared_ptr<GradientExchange> exchange, std::vector<Place> places);

  GradientExchange& exchange() const { return *exchange_; }
  std::size_t layer_of(std::size_t parameter) const { return places_[parameter].layer; }
  float& number(std::int64_t place) const {
    return exchange_->gradients()[static_cast<std::size_t>(place)];
  }

  // Puts the parameter's gradient in its place; if there is none, or it is not `wanted`, zeros.
  void put(std::size_t parameter, bool wanted);
  // All gradients of the layer have been put: the exchange has them when they have arrived.
  void hand_over(std::size_t layer);
  // Returns when it has all of them.
  void finish();

  // Makes the sums of these parameters ready for sum_of().
  void fetch(const std::vector<std::size_t>& parameters);
  // Undefined if no process had a gradient. May be a view of memory that the next step uses.
  at::Tensor sum_of(std::size_t parameter) const;

  // Layers to update with this one: all that there are or, since the forward pass on a device waits
  // for their copies, those that follow and are not too many.
  Range updated_with(std::size_t layer) const;

 private:
  void fill(std::size_t parameter, const at::Tensor& gradient);
  // A plain one is dense, on the host and of floats.
  void fill_by_operators(const at::Tensor& gradient, bool plain, at::Tensor& target);
  void clear(std::size_t parameter);
  void announce_arrivals();
  bool is_used(std::size_t parameter) const { return number(places_[parameter].flag) > 0; }
  bool is_staged(std::size_t parameter) const;

  const std::vector<at::Tensor>& parameters_;
  const double scale_;
  const std::shared_ptr<GradientExchange> exchange_;
  const std::vector<Place> places_;
  std::vector<at::Tensor> sums_;  // by parameter; views of the exchange's buffer, if it has others
  std::optional<Staging> staging_;  // of the first parameter's device; empty: it is the host
};

}  // namespace sluice::python
