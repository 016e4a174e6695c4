#pragma once

#include "drivers/realtime/phase.h"

namespace sluice {

// Every worker and every host's communication has a thread of this process. Returns when every
// worker has the parameters of the last iteration. The first failure of any thread ends all of
// them and is thrown here.
void train_on_threads(const Phase& phase);

}  // namespace sluice
