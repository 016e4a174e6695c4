#pragma once

#include <functional>
#include <thread>

namespace sluice {

using ThreadBody = std::function<void()>;

// Throws std::runtime_error, which says what to do, if the system gives no further thread.
std::jthread start_thread(ThreadBody body);

// As start_thread(), for those whom a test gives another one.
using StartThread = std::function<std::jthread(ThreadBody body)>;

}  // namespace sluice
