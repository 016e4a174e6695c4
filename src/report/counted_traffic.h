#pragma once

#include "protocol/observer.h"

namespace sluice {

// Forwards messages and work only if iterations from `first` on wait for them; all else in full.
// The other observer must outlive this one.
class CountedTraffic final : public Observer {
 public:
  CountedTraffic(Observer& observer, Iteration first) : observer_(observer), first_(first) {}

  void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                Time end) override {
    observer_.computed(worker, layer, iteration, pass, begin, end);
  }
  void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) override {
    observer_.waited(worker, layer, iteration, begin, end);
  }
  void sent(const Message& message, Time begin, Time end) override {
    if (message.iteration >= first_) {
      observer_.sent(message, begin, end);
    }
  }
  void received(const Message& message, Time begin, Time end) override {
    if (message.iteration >= first_) {
      observer_.received(message, begin, end);
    }
  }
  void worked(const Work& work, Time begin, Time end) override {
    if (work.iteration >= first_) {
      observer_.worked(work, begin, end);
    }
  }

 private:
  Observer& observer_;
  Iteration first_;
};

}  // namespace sluice
