#include "torch/layer_calls.h"

#include "base/check.h"

namespace sluice {

LayerCalls::LayerCalls(const Layout& layout, StepHooks& hooks)
    : layout_(layout),
      hooks_(hooks),
      announced_(layout.layers.size()),
      missing_(layout.layers.size()) {
  for (const LayerId layer : layout.layer_of) {
    ++missing_[layer.index()];
  }
}

void LayerCalls::announce(LayerId layer) {
  if (!announced_[layer.index()]) {
    announced_[layer.index()] = true;
    hooks_.before_layer(layer);
  }
}

void LayerCalls::before_read(std::size_t parameter) { announce(layout_.layer_of[parameter]); }

void LayerCalls::all_read() {
  for (std::size_t layer = 0; layer < announced_.size(); ++layer) {
    announce(LayerId(layer));
  }
}

void LayerCalls::forward_done() {
  all_read();
  hooks_.forward_done();
}

void LayerCalls::gradient_final(std::size_t parameter) {
  const LayerId layer = layout_.layer_of[parameter];
  check(missing_[layer.index()] > 0, "a gradient becomes final once");
  if (--missing_[layer.index()] == 0) {
    hooks_.gradient_ready(layer);
  }
}

void LayerCalls::backward_done() {
  for (std::size_t layer = missing_.size(); layer-- > 0;) {
    if (missing_[layer] > 0) {
      missing_[layer] = 0;
      hooks_.gradient_ready(LayerId(layer));
    }
  }
}

}  // namespace sluice
