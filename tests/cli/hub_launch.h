#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"

namespace sluice {

inline constexpr const char* kLaunch = "launch --transport tcp ";
// Rank 0 shows its progress.
inline constexpr const char* kInMidTraining =
    "for i in $(seq 300); do grep -q step said-0 && break; sleep 0.1; done";

// The environment in which that is used.
inline constexpr const char* kAgent = "OMPI_MCA_plm_rsh_agent='sh agent'";

// "asp --servers 1" is asp, "ad-psgd" is ad_psgd.
inline std::string test_name_of(const ::testing::TestParamInfo<const char*>& preset_and_settings) {
  const std::string words = preset_and_settings.param;
  std::string name = words.substr(0, words.find(' '));
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

inline nlohmann::json summary_in(const Outcome& outcome) {
  const std::size_t begin = outcome.out.rfind("\n{");
  return nlohmann::json::parse(outcome.out.substr(begin == std::string::npos ? 0 : begin + 1));
}

class CliHubLaunchTest : public ::testing::Test {
 protected:
  CliHubLaunchTest() {
    folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
        {"name":"a","params":3000,"forward_us":500,"backward_us":500},
        {"name":"b","params":300,"forward_us":500,"backward_us":500}]})");
  }

  // One of the processes is killed after this wait, if nobody has restarted it, or all. What each
  // says is in a file until it ends.
  void write_work(const std::string& train, int killed, const std::string& until,
                  const std::string& signal = "KILL") const {
    folder_.write("said-0", "");
    folder_.write("work.sh", "'" SLUICE_BINARY "'" + train + R"( 2> said-$SLUICE_RANK &
        if [ $SLUICE_RESTART = 0 ] && [ -z "$SLUICE_JOINS" ] && [ $SLUICE_RANK = )" +
                                 std::to_string(killed) + " ]; then\n" + until + R"(
          kill -)" + signal + R"( $!
        fi
        wait $!
        code=$?
        cat said-$SLUICE_RANK >&2
        exit $code)");
  }
  // A stand-in for ssh. Once there is a file "gone", 127.0.0.2 does not answer.
  void write_agent() const {
    folder_.write("agent",
                  "[ $1 = 127.0.0.2 ] && [ -e gone ] && exit 255\nshift\nexec sh -c \"$*\"\n");
  }
  Outcome launch(const std::string& arguments) const {
    return sluice(kLaunch + arguments, folder_);
  }

  const TemporaryFolder folder_;
};

}  // namespace sluice
