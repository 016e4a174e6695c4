#pragma once

#include <memory>

#include "session/process_group.h"

namespace sluice {

// This process alone: hosts are threads.
std::unique_ptr<ProcessGroup> make_thread_group();

}  // namespace sluice
