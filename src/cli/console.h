#pragma once

#include <exception>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "session/log.h"
#include "session/process_group.h"

namespace sluice::cli {

using OrderedJson = nlohmann::ordered_json;  // as results are written

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;    // the run failed, or Sluice has a defect
inline constexpr int kBadInput = 2;  // usage, or a file of the user's

// Say what is wrong in one line on standard error, and return the exit code.
int bad_input(const Error& error);
int failed(const Error& error);

// The same for what ended a run by an exception, and for what only deserves attention.
int failed(const std::exception& error);
void warn(const std::string& text);

// The exit code of a command that the processes of a group carry out together. If this one fails,
// it says so and ends all of them.
int run_in(ProcessGroup& group, const std::function<int()>& command);

// Results go to standard output, all else to standard error.
void print(const std::string& text);
void print(const OrderedJson& value);

// Whether the file that --out names can be written, which would else only show after all has been
// measured.
Result<void> check_writable(const std::string& out);

// The word must be one of the setting log-level.
void start_logging(const std::string& level);
// What a session reports goes to the same log.
Log session_log();

}  // namespace sluice::cli
