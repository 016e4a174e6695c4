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
  Duration ran{0};               // from the start of the command
  std::vector<Traffic> traffic;  // of each host, in total
};

// Builds the lab, runs the command in it, and takes the lab down. Writes the counters of every
// host's link to `samples` every 10 ms. The first SIGINT, SIGTERM or SIGHUP ends the command. A
// second one ends the lab at once, and so does a command that does not end. Signals that this
// process ignores do nothing. Nothing of the lab outlives this call, nor this process. One at a
// time in a process.
Result<Outcome> run(const Spec& spec, std::ostream& samples);

}  // namespace sluice::lab
