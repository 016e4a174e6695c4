#pragma once

#include <utility>

#include "protocol/effects.h"

namespace sluice::testing {

// Passes everything on. A test overrides what it watches or changes.
class ForwardingEffects : public Effects {
 public:
  explicit ForwardingEffects(Effects& inner) : inner_(inner) {}

  void send(const Message& message, Payload payload) override {
    inner_.send(message, std::move(payload));
  }
  void start(Work work) override { inner_.start(std::move(work)); }
  void release(NodeId worker, LayerId layer, Iteration iteration) override {
    inner_.release(worker, layer, iteration);
  }
  Payload borrow(NodeId node, const BufferRange& what) override {
    return inner_.borrow(node, what);
  }
  Payload copy(NodeId node, const BufferRange& what) override { return inner_.copy(node, what); }

 private:
  Effects& inner_;
};

}  // namespace sluice::testing
