#pragma once

#include <string>
#include <vector>

#include "learners/learner.h"

namespace sluice {

// Records all calls.
class RecordedHooks : public StepHooks {
 public:
  bool before_layer(LayerId layer) override {
    note("read ", layer);
    return true;
  }
  void forward_done() override { calls.emplace_back("forward done"); }
  void gradient_ready(LayerId layer) override { note("ready ", layer); }

  std::vector<std::string> calls;

 private:
  void note(const std::string& what, LayerId layer) {
    calls.push_back(what + std::to_string(layer.index()));
  }
};

}  // namespace sluice
