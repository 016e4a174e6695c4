#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "lab/plan.h"
#include "lab/traffic.h"

namespace sluice::lab {

// What this machine lacks for a lab, each with how to get it; empty if nothing.
std::vector<std::string> missing();

struct Outcome {
  int exit_code = 0;             // of the command; 128 + signal if the lab was interrupted
  Duration ran{0};               // from the command's start on
  std::vector<Traffic> traffic;  // of each host, in all
};

// Builds the lab, runs the command in it, and takes the lab down. The counters of every host's link
// go to `samples` each 10 ms. The first SIGINT, SIGTERM or SIGHUP ends the command, a second one,
// or its refusal to end, the lab at once; those that this process ignores do nothing. Nothing of
// the lab outlives this call, nor this process. One at a time in a process.
Result<Outcome> run(const Spec& spec, std::ostream& samples);

}  // namespace sluice::lab
