#pragma once

#include <vector>

#include "model/layer.h"
#include "model/strategy.h"
#include "model/topology.h"

namespace sluice {

// What is trained, where and how: all that the protocol core needs to know.
struct Job {
  std::vector<Layer> layers;
  Topology topology;
  Strategy strategy;
  int server_threads = 1;         // pieces of arithmetic that a host does at a time
  bool native_allreduce = false;  // the driver offers a whole all-reduce as one operation
};

}  // namespace sluice
