#pragma once

#include <optional>

#include "drivers/realtime/offloading.h"
#include "drivers/realtime/phase.h"

namespace sluice {

// Every worker and every host's communication has a thread of this process. Returns when every
// worker has the parameters after its last iteration and nothing is in flight. The result is the
// signal that stopped them early, if one did. The first failure of any thread ends all of them and
// is thrown here. Nothing needs to be offloaded, since no message waits for a loop; tests offload
// to see what MPI does.
std::optional<int> train_on_threads(const Phase& phase,
                                    const std::optional<Offloading>& offloading = std::nullopt);

}  // namespace sluice
