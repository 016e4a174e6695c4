#pragma once

#include <utility>
#include <vector>

#include "protocol/observer.h"

namespace sluice {

// Forwards everything to several observers, in order. They must outlive the tee.
class Tee : public Observer {
 public:
  explicit Tee(std::vector<Observer*> observers) : observers_(std::move(observers)) {}

  void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                Time end) override {
    for (Observer* o : observers_) {
      o->computed(worker, layer, iteration, pass, begin, end);
    }
  }
  void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) override {
    for (Observer* o : observers_) {
      o->waited(worker, layer, iteration, begin, end);
    }
  }
  void copied(NodeId worker, LayerId layer, Iteration iteration, Passage passage, Time begin,
              Time end) override {
    for (Observer* o : observers_) {
      o->copied(worker, layer, iteration, passage, begin, end);
    }
  }
  void sent(const Message& message, Time begin, Time end) override {
    for (Observer* o : observers_) {
      o->sent(message, begin, end);
    }
  }
  void received(const Message& message, Time begin, Time end) override {
    for (Observer* o : observers_) {
      o->received(message, begin, end);
    }
  }
  void worked(const Work& work, Time begin, Time end) override {
    for (Observer* o : observers_) {
      o->worked(work, begin, end);
    }
  }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace sluice
