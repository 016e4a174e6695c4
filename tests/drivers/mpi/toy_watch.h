#pragma once

namespace sluice::testing {

// What toy_watch.cc, which stands between the toy program and MPI, has to know of the program.
struct ToyWatch {
  int learners = 0;  // that exist
  bool stops_finalising = false;
};
inline ToyWatch toy_watch;

}  // namespace sluice::testing
