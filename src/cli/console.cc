#include "cli/console.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text.h"
#include "data/dataset.h"
#include "drivers/processes/launch.h"

namespace sluice::cli {
namespace {

// Rank 0 reports without its rank, the others with it.
void complain(const Error& error) {
  const auto launch = find_launch();
  const bool first = !launch || launch->rank == 0;
  fmt::print(stderr, "sluice: {}{}\n", first ? "" : rank_on_host(launch->rank) + ": ",
             one_line(error.message()));
}

}  // namespace

int bad_input(const Error& error) {
  complain(error);
  return kBadInput;
}

int failed(const Error& error) {
  complain(error);
  return kFailed;
}

int failed(const std::exception& error) {
  if (dynamic_cast<const DataError*>(&error) != nullptr) {
    return bad_input(Error(error.what()));
  }
  const bool defect = dynamic_cast<const InvariantError*>(&error) != nullptr;
  return failed(defect ? Error(error.what()).within("a defect of sluice itself, please report it")
                       : Error(error.what()));
}

int fail(std::size_t /*rank*/, const std::exception& error) { return failed(error); }

void warn(const std::string& text) { complain(Error(text)); }

int run_in(ProcessGroup& group, const std::function<int()>& command) {
  try {
    return command();
  } catch (const std::exception& e) {
    const int code = failed(e);
    group.abort(code);
    return code;
  }
}

void print(const std::string& text) { fmt::print("{}", text); }

void print(const nlohmann::ordered_json& value) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print("{}\n", value.dump(2, ' ', false, kReplace));
}

Result<void> check_writable(const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(out, ignored)) {
    return Error(fmt::format("--out: {} is a folder; name a file in it", out));
  }
  const fs::path folder = fs::absolute(out).parent_path();
  if (!fs::is_directory(folder, ignored)) {
    return Error(fmt::format("--out: there is no folder {}; create it first", folder.string()));
  }
  if (access(folder.c_str(), W_OK) != 0) {
    return Error(fmt::format("--out: cannot write to {}", folder.string()));
  }
  return {};
}

void start_logging(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("sluice");
  logger->set_pattern("%^%l%$: %v");
  // Of several processes only the one that leads logs progress.
  const auto launch = find_launch();
  const bool joins = std::getenv(kHubJoinVariable) != nullptr;
  logger->set_level(launch && (launch->rank > 0 || joins) ? spdlog::level::err
                                                          : spdlog::level::from_str(level));
  spdlog::set_default_logger(logger);
}

void log_as_leader(const std::string& level) {
  spdlog::default_logger()->set_level(spdlog::level::from_str(level));
}

Log session_log() {
  return {.info = [](const std::string& text) { spdlog::info("{}", text); }, .warn = warn};
}

}  // namespace sluice::cli
