#pragma once

namespace sluice {

// Whether events of this LibTorch can measure the time between two of them. Before 2.3 they cannot.
template <class Event>
concept TellsTime = requires(const Event& begin, const Event& end) {
  begin.elapsedTime(end);
};

}  // namespace sluice
