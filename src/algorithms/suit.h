#pragma once

#include "model/job.h"

namespace sluice {

// Which sizes of a strategy the user has chosen.
struct ChosenSizes {
  bool slice = false;
  bool credit = false;
  bool peer_credit = false;
  bool segment = false;
};

// Changes the other sizes to what suits the machines and the link of the job: for drivers that know
// both.
void suit_to_network(Job& job, const ChosenSizes& chosen);

}  // namespace sluice
