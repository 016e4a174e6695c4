#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "drivers/processes/survey_messages.h"

namespace sluice {

// How the link between two ranks is measured, whatever carries it: one of them commands, and times
// the answers of the other one, which serves. One of the two messages may be long:
//
//   measuring rank   command{out, back}  payload of `out` bytes  ->
//                                            <-  answer of `back` bytes   serving rank

// An upper bound on how long measuring or serving takes.
inline Duration ping_pong_limit(const SurveySpec& spec) { return spec.patience * 6; }

// How long a ping-pong took; none if an answer did not come in time.
using PingPong = std::function<std::optional<Duration>(const PingPongCommand& command)>;

// Both directions between the ranks; none if an answer did not come in time.
std::optional<std::vector<LinkTimings>> measure_both_ways(const SurveySpec& spec, std::size_t self,
                                                          std::size_t peer,
                                                          const PingPong& ping_pong);

}  // namespace sluice
