#pragma once

#include <utility>
#include <vector>

#include "protocol/effects.h"

namespace sluice::testing {

// Only records what a node asks for. Payloads have a size and no data.
class EffectLog final : public Effects {
 public:
  struct Sending {
    Message message;
    Payload payload;
  };
  struct Release {
    LayerId layer;
    Iteration iteration;
    bool operator==(const Release&) const = default;
  };

  void send(const Message& message, Payload payload) override {
    sent.push_back({message, std::move(payload)});
  }
  void start(Work work) override { started.push_back(std::move(work)); }
  void release(NodeId /*worker*/, LayerId layer, Iteration iteration) override {
    released.push_back({layer, iteration});
  }
  Payload borrow(NodeId /*node*/, const BufferRange& what) override {
    borrowed.push_back(what);
    return Payload(what.range.size() * kFloatBytes);
  }
  Payload copy(NodeId /*node*/, const BufferRange& what) override {
    copied.push_back(what);
    return Payload(what.range.size() * kFloatBytes);
  }

  std::vector<Sending> sent;
  std::vector<Work> started;
  std::vector<Release> released;
  std::vector<BufferRange> borrowed;
  std::vector<BufferRange> copied;
};

}  // namespace sluice::testing
