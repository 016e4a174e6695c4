#pragma once

#include <ATen/record_function.h>

#include <functional>

namespace sluice {

// Called before an operator runs; must not throw.
using BeforeOperator = std::function<void(const at::RecordFunction& call)>;

// Runs `work` and shows every operator that it calls on this thread, and those that they call in
// turn, to `before`.
void watch_operators(const std::function<void()>& work, const BeforeOperator& before);

}  // namespace sluice
