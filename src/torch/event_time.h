#pragma once

namespace sluice {

// Whether events of this LibTorch tell the time between two of them; those before 2.3 do not.
template <class Event>
concept TellsTime = requires(const Event& begin, const Event& end) {
  begin.elapsedTime(end);
};

}  // namespace sluice
