#include "drivers/realtime/start_thread.h"

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace sluice {

std::jthread start_thread(ThreadBody body) {
  try {
    return std::jthread(std::move(body));
  } catch (const std::system_error& error) {
    throw std::runtime_error(
        "a thread cannot be started: " + error.code().message() +
        "; raise the limit of processes (ulimit -u, or the pids limit of the container or job), or "
        "use fewer --workers and --loaders in this process");
  }
}

}  // namespace sluice
