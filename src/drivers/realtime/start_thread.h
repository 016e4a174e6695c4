#pragma once

#include <functional>
#include <thread>

namespace sluice {

using ThreadBody = std::function<void()>;

// Throws std::runtime_error with advice if the system refuses another thread.
std::jthread start_thread(ThreadBody body);

// The type of start_thread(), so that a test can pass a fake.
using StartThread = std::function<std::jthread(ThreadBody body)>;

}  // namespace sluice
