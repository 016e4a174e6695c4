#pragma once

#include "nodes/basic_worker.h"

namespace sluice {

// EASGD: local steps; every `period` iterations the worker sends its parameters to the centre,
// which pulls both towards each other and answers with the worker's new copy.
class ElasticWorker final : public BasicWorker {
 public:
  using BasicWorker::BasicWorker;

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override;
  void on_network(const Event& event, Effects& effects) override;
};

}  // namespace sluice
