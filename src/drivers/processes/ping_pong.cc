#include "drivers/processes/ping_pong.h"

#include <utility>

#include "drivers/realtime/clock.h"

namespace sluice {
namespace {

constexpr Bytes kSmallest = 4 << 10;
constexpr int kRoundTrips = 50;  // they are short and vary the most

class Measurement {
 public:
  Measurement(const SurveySpec& spec, const PingPong& ping_pong)
      : spec_(spec), ping_pong_(ping_pong) {}

  std::optional<std::vector<Timing>> one_way(bool outwards) const {
    std::vector<Timing> timings;
    for (Bytes bytes = 0; bytes <= kMaxPingPongBytes; bytes = bytes == 0 ? kSmallest : bytes * 4) {
      const auto timing = of_size(bytes, outwards);
      if (!timing) {
        return std::nullopt;
      }
      timings.push_back(*timing);
      if (bytes > 0 && timing->median >= spec_.enough) {
        break;
      }
    }
    return timings;
  }

 private:
  std::optional<Timing> of_size(Bytes bytes, bool outwards) const {
    const int count = bytes == 0 ? kRoundTrips : spec_.repetitions;
    const PingPongCommand command{.out = outwards ? bytes : 0, .back = outwards ? 0 : bytes};
    if (!ping_pong_(command)) {  // a warm-up
      return std::nullopt;
    }
    std::vector<Duration> times;
    for (int i = 0; i < count; ++i) {
      const auto time = ping_pong_(command);
      if (!time || clock_.now() > ping_pong_limit(spec_)) {
        return std::nullopt;
      }
      times.push_back(*time);
    }
    return timing_of(bytes, std::move(times));
  }

  const SurveySpec& spec_;
  const PingPong& ping_pong_;
  Clock clock_;
};

}  // namespace

std::optional<std::vector<LinkTimings>> measure_both_ways(const SurveySpec& spec, std::size_t self,
                                                          std::size_t peer,
                                                          const PingPong& ping_pong) {
  const Measurement measurement(spec, ping_pong);
  auto out = measurement.one_way(true);
  auto back = out ? measurement.one_way(false) : std::nullopt;
  if (!back) {
    return std::nullopt;
  }
  return std::vector<LinkTimings>{{self, peer, *std::move(out)}, {peer, self, *std::move(back)}};
}

}  // namespace sluice
