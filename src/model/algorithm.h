#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_set.h"
#include "base/id.h"
#include "model/axes.h"
#include "model/names.h"

namespace sluice {

struct Strategy;

// A new algorithm is a value here, its row in kAlgorithms and its row in nodes/algorithms.cc.
// docs/extending.md shows one.
enum class Algorithm : std::uint8_t {
  kBsp,     // all workers take every step together
  kAsp,     // the server takes each gradient as it comes
  kSsp,     // as kAsp, but nobody gets further ahead than the staleness bound
  kEasgd,   // local steps, elastically tied to a centre
  kLocal,   // local steps, at times an outer step of all workers (local SGD, DiLoCo)
  kGossip,  // local steps, now and then a weighted share to a random peer (GoSGD)
  kAdPsgd,  // local steps, the mean with a random partner (AD-PSGD)
  kPipe,    // as kBsp, with the gradient of a fixed number of iterations ago (Pipe-SGD)
  kCount,   // none: how many there are
};

// How the workers wait for each other.
enum class Coupling : std::uint8_t {
  kLockStep,   // an iteration begins with the gradients of all workers up to the one before
  kPipelined,  // all make the same updates, some iterations late
  kBounded,    // replicas differ, and a worker waits for others that are too far behind
  kFree,       // nobody waits for another worker
};

// What leaves a worker.
enum class Sends : std::uint8_t {
  kGradients,
  kParameters,
  kOuterGradients,  // how far its own steps have led it from the global parameters
};

// What the rest of Sluice has to know about an algorithm.
struct AlgorithmTraits {
  Algorithm value;
  std::string_view name;
  EnumSet<Exchange> exchanges;    // that it goes with
  std::string_view why_no_other;  // exchange, and which one to take
  Coupling coupling;
  Sends sends;
  // Gradients of so many iterations may be in use at a time.
  std::size_t (*gradient_slots)(const Strategy&);
  // So many iterations a worker may be ahead of the slowest; a server holds back who would be more.
  Iteration (*max_lead)(const Strategy&);

  constexpr bool replicas_agree() const {
    return coupling == Coupling::kLockStep || coupling == Coupling::kPipelined;
  }
};

namespace algorithm_traits {

std::size_t one_slot(const Strategy&);
// The next gradient is made while the server still reads the last one.
std::size_t slots_of_staleness(const Strategy& strategy);
std::size_t slots_of_pipeline(const Strategy& strategy);

Iteration no_lead(const Strategy&);
Iteration lead_of_staleness(const Strategy& strategy);
Iteration lead_of_pipeline(const Strategy& strategy);
Iteration lead_of_cadence(const Strategy& strategy);
Iteration any_lead(const Strategy&);

}  // namespace algorithm_traits

inline constexpr std::array kAlgorithms{
    AlgorithmTraits{.value = Algorithm::kBsp,
                    .name = "bsp",
                    .exchanges = {Exchange::kBroadcast, Exchange::kPullAfterNotify,
                                  Exchange::kLatePull, Exchange::kAllReduce},
                    .why_no_other = "all workers step together, and gossip reaches only one peer; "
                                    "take an exchange over servers, or allreduce",
                    .coupling = Coupling::kLockStep,
                    .sends = Sends::kGradients,
                    .gradient_slots = algorithm_traits::one_slot,
                    .max_lead = algorithm_traits::no_lead},
    AlgorithmTraits{
        .value = Algorithm::kAsp,
        .name = "asp",
        .exchanges = {Exchange::kBroadcast},
        .why_no_other = "the server answers each worker by itself; take exchange ps-broadcast",
        .coupling = Coupling::kFree,
        .sends = Sends::kGradients,
        .gradient_slots = algorithm_traits::one_slot,
        .max_lead = algorithm_traits::any_lead},
    AlgorithmTraits{.value = Algorithm::kSsp,
                    .name = "ssp",
                    .exchanges = {Exchange::kLatePull},
                    .why_no_other = "the worker asks for parameters when it needs them; take "
                                    "exchange ps-late-pull",
                    .coupling = Coupling::kBounded,
                    .sends = Sends::kGradients,
                    .gradient_slots = algorithm_traits::slots_of_staleness,
                    .max_lead = algorithm_traits::lead_of_staleness},
    AlgorithmTraits{
        .value = Algorithm::kEasgd,
        .name = "easgd",
        .exchanges = {Exchange::kBroadcast},
        .why_no_other = "the server answers each worker by itself; take exchange ps-broadcast",
        .coupling = Coupling::kFree,
        .sends = Sends::kParameters,
        .gradient_slots = algorithm_traits::one_slot,
        .max_lead = algorithm_traits::any_lead},
    AlgorithmTraits{.value = Algorithm::kLocal,
                    .name = "local-steps",
                    .exchanges = {Exchange::kAllReduce, Exchange::kGossip},
                    .why_no_other = "its workers exchange how far they have come among themselves; "
                                    "take exchange allreduce or gossip, or algorithm easgd with "
                                    "servers",
                    .coupling = Coupling::kBounded,
                    .sends = Sends::kOuterGradients,
                    .gradient_slots = algorithm_traits::one_slot,
                    .max_lead = algorithm_traits::lead_of_cadence},
    AlgorithmTraits{.value = Algorithm::kGossip,
                    .name = "gosgd",
                    .exchanges = {Exchange::kGossip},
                    .why_no_other = "it knows neither servers nor sums; take exchange gossip",
                    .coupling = Coupling::kFree,
                    .sends = Sends::kParameters,
                    .gradient_slots = algorithm_traits::one_slot,
                    .max_lead = algorithm_traits::any_lead},
    AlgorithmTraits{.value = Algorithm::kAdPsgd,
                    .name = "ad-psgd",
                    .exchanges = {Exchange::kGossip},
                    .why_no_other = "it knows neither servers nor sums; take exchange gossip",
                    .coupling = Coupling::kFree,
                    .sends = Sends::kParameters,
                    .gradient_slots = algorithm_traits::one_slot,
                    .max_lead = algorithm_traits::any_lead},
    AlgorithmTraits{.value = Algorithm::kPipe,
                    .name = "pipe-sgd",
                    .exchanges = {Exchange::kAllReduce},
                    .why_no_other = "it overlaps an all-reduce; take exchange allreduce",
                    .coupling = Coupling::kPipelined,
                    .sends = Sends::kGradients,
                    .gradient_slots = algorithm_traits::slots_of_pipeline,
                    .max_lead = algorithm_traits::lead_of_pipeline},
};
static_assert(has_all_values(kAlgorithms), "each algorithm has one row, in the order of the enum");

inline constexpr std::array kAlgorithmNames = names_in(kAlgorithms);

constexpr const AlgorithmTraits& traits_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)];
}

}  // namespace sluice
