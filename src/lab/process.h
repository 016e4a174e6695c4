#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/plan.h"

namespace sluice::lab {

// "what: " and the text of errno.
Error system_error(const std::string& what);

// Runs the body in a child process and waits for it to end. If it fails, the error is what the
// body, or a program that it execs, printed on standard error.
Result<void> in_child(const std::function<Result<void>()>& body);

// What a program prints on standard output and standard error. If it fails, that is the error.
Result<std::string> output_of(const Words& words);

// Where the PATH has a program.
std::optional<std::string> find_program(const std::string& name);

// Execs the program, found on the PATH; returns only if that fails.
Error become(const Words& words);

// Moves this process into the namespaces of a host; `path` is its folder on the shelf.
Result<void> enter_host(const std::string& path);

// The exit code that a shell would show for this wait status.
int exit_code(int wait_status);

}  // namespace sluice::lab
