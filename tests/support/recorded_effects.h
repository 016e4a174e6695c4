#pragma once

#include <string>
#include <utility>
#include <vector>

#include "protocol/effects.h"

namespace sluice::testing {

// Records what a node does, in order, and nothing else.
class RecordedEffects final : public Effects {
 public:
  void send(const Message& message, Payload payload) override {
    log.push_back("send to " + std::to_string(message.to.index()));
    sent.push_back(message);
    payloads.push_back(std::move(payload));
  }
  void start(Work work) override {
    log.push_back("start " + std::to_string(work.chunk.index()));
    started.push_back(std::move(work));
  }
  void release(NodeId worker, LayerId layer, Iteration /*iteration*/) override {
    log.push_back("release " + std::to_string(worker.index()) + "/" +
                  std::to_string(layer.index()));
  }
  Payload borrow(NodeId /*node*/, const BufferRange& what) override {
    log.emplace_back("borrow");
    return Payload(what.range.size() * kFloatBytes);
  }
  Payload copy(NodeId /*node*/, const BufferRange& what) override {
    log.emplace_back("copy");
    return Payload(what.range.size() * kFloatBytes);
  }

  // The entries since the last call.
  std::vector<std::string> news() { return std::exchange(log, {}); }

  std::vector<std::string> log;
  std::vector<Message> sent;
  std::vector<Payload> payloads;
  std::vector<Work> started;
};

}  // namespace sluice::testing
