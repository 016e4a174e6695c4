#include "cli/console.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sluice::cli {
namespace {

void complain(const Error& error) { fmt::print(stderr, "sluice: {}\n", one_line(error.message())); }

}  // namespace

int bad_input(const Error& error) {
  complain(error);
  return kBadInput;
}

int failed(const Error& error) {
  complain(error);
  return kFailed;
}

void print(const std::string& text) { fmt::print("{}", text); }

void print(const nlohmann::ordered_json& value) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print("{}\n", value.dump(2, ' ', false, kReplace));
}

void start_logging(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("sluice");
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(logger);
}

}  // namespace sluice::cli
