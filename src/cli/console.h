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
inline constexpr int kBadInput = 2;  // wrong usage, or a bad input file

// Print what is wrong in one line on standard error, and return the exit code.
int bad_input(const Error& error);
int failed(const Error& error);

// The same for an exception that ended a run, and for what only deserves attention.
int failed(const std::exception& error);
int fail(std::size_t rank, const std::exception& error);  // the same, for a group of processes
void warn(const std::string& text);

// The exit code of a command that the processes of a group run together. If it fails in this
// process, prints the error and ends all of them.
int run_in(ProcessGroup& group, const std::function<int()>& command);

// Results go to standard output, everything else to standard error.
void print(const std::string& text);
void print(const OrderedJson& value);

// Whether the file that --out names can be written. Checked first, since a failure would otherwise
// show only after all measurements.
Result<void> check_writable(const std::string& out);

// The level must be a value of the setting log-level.
void start_logging(const std::string& level);
// In one of several processes, if it leads from now on.
void log_as_leader(const std::string& level);
// A session reports to the same log; the warnings of all ranks are shown.
Log session_log();

}  // namespace sluice::cli
