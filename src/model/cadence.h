#pragma once

#include <array>
#include <cstdint>

#include "base/id.h"
#include "model/names.h"

namespace sluice {

// What becomes of the mean way of the workers since the last exchange, the outer gradient.
enum class Outer : std::uint8_t {
  kMean,      // a step of plain descent; with rate 1 the mean of the workers
  kNesterov,  // a step with Nesterov's momentum
};

inline constexpr std::array kOuterNames{
    Names<Outer>{Outer::kMean, "mean"},
    Names<Outer>{Outer::kNesterov, "nesterov"},
};

// How often workers exchange, and what they make of it: algorithm local-steps. A worker takes steps
// of its own; after every so many of them its way from the global parameters to its own is summed
// over all workers, an outer step moves the global parameters, and every worker takes them over.
//
// The layers may be dealt over fragments, which take turns: each is exchanged once in `every`
// iterations. The iteration alone decides which one goes when.
//
// With exchange gossip, pairs of workers take the place of all: each worker has global parameters
// of its own, and the outer step also pulls them towards those of its partner (NoLoCo).
//
//   every 6, fragments 2, delay 1        fragment 0   . . B A . . . . B A . .
//   B: begins, A: applied                fragment 1   . . . . . B A . . . . B A
struct Cadence {
  Iteration every = 1;        // local steps between two exchanges of a fragment
  Iteration synchronous = 0;  // so many iterations at the start are those of algorithm bsp
  Outer outer = Outer::kMean;
  double rate = 1;             // of the outer step
  double momentum = 0.9;       // of outer nesterov
  double pull = 0.7;           // exchange gossip: towards the mean global parameters of a pair
  std::int64_t fragments = 1;  // at most `every`
  // The outer step is taken so many local steps after its exchange began, which runs behind them.
  Iteration delay = 0;  // less than `every`
  double mix = 0;       // share of a worker's own parameters that it keeps when it takes over

  // Whether the exchange of this fragment begins with the parameters of this iteration.
  constexpr bool begins_at(Iteration iteration, std::int64_t fragment) const {
    const Iteration offset = (fragment + 1) * every / fragments;
    const Iteration local = iteration - synchronous;
    return local > 0 && local % every == offset % every;
  }

  // The exchange of this fragment that has begun, and whose outer step is not due yet with the
  // parameters of this iteration; 0: there is none.
  constexpr Iteration under_way_at(Iteration iteration, std::int64_t fragment) const {
    for (Iteration begun = iteration; begun > iteration - delay; --begun) {
      if (begins_at(begun, fragment)) {
        return begun;
      }
    }
    return 0;
  }

  bool operator==(const Cadence&) const = default;
};

}  // namespace sluice
