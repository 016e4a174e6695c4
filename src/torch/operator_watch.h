#pragma once

#include <ATen/record_function.h>

#include <functional>

namespace sluice {

// Called before an operator runs, or after it; must not throw.
using OnOperator = std::function<void(const at::RecordFunction& call)>;

// Runs `work`. Passes every operator that it calls on this thread, directly or through another
// operator, to `before`, and after the operator, with its outputs, to `after` if there is one.
// Watches may nest; only the outermost may have an `after`.
void watch_operators(const std::function<void()>& work, const OnOperator& before,
                     const OnOperator& after = {});

}  // namespace sluice
