// Reads the sources of Sluice and fails where they break the order of the folders or reach for the
// world (clocks, threads, environment, entropy) outside the folders that are made for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "support/source_reader.h"

namespace sluice {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A folder may include what stands above it here, and itself. docs/architecture.md says the same.
constexpr std::array<std::string_view, 29> kFolders{"base",
                                                    "model",
                                                    "formats",
                                                    "wire",
                                                    "protocol",
                                                    "scheduling",
                                                    "partition",
                                                    "codecs",
                                                    "collectives",
                                                    "optimizers",
                                                    "nodes",
                                                    "learners",
                                                    "data",
                                                    "state",
                                                    "torch",
                                                    "drivers/realtime",
                                                    "drivers/threads",
                                                    "drivers/tcp",
                                                    "drivers/processes",
                                                    "drivers/hub",
                                                    "drivers/mpi",
                                                    "drivers/virtual",
                                                    "planner",
                                                    "lab",
                                                    "report",
                                                    "session",
                                                    "exchange",
                                                    "api",
                                                    "cli"};

struct Ban {
  std::string_view from;
  std::string_view to;
};

// Drivers know neither each other nor any concrete algorithm.
constexpr std::array<Ban, 19> kBans{{
    {"drivers/virtual", "drivers/realtime"},
    {"drivers/virtual", "drivers/threads"},
    {"drivers/virtual", "drivers/mpi"},
    {"drivers/virtual", "drivers/tcp"},
    {"drivers/virtual", "drivers/processes"},
    {"drivers/virtual", "drivers/hub"},
    {"drivers/processes", "drivers/threads"},
    {"drivers/hub", "drivers/threads"},
    {"drivers/hub", "drivers/mpi"},
    {"drivers/mpi", "drivers/hub"},
    {"drivers/mpi", "drivers/threads"},
    {"drivers/tcp", "drivers/threads"},
    {"drivers/realtime", "nodes"},
    {"drivers/threads", "nodes"},
    {"drivers/tcp", "nodes"},
    {"drivers/processes", "nodes"},
    {"drivers/hub", "nodes"},
    {"drivers/mpi", "nodes"},
    {"drivers/virtual", "nodes"},
}};

constexpr std::size_t kMaxLines = 400;

// A door to the world: open to these folders, and to one more where it says so.
constexpr std::array<std::string_view, 11> kWorldly{"drivers/realtime",
                                                    "drivers/threads",
                                                    "drivers/tcp",
                                                    "drivers/processes",
                                                    "drivers/hub",
                                                    "drivers/mpi",
                                                    "lab",
                                                    "session",
                                                    "exchange",
                                                    "api",
                                                    "cli"};

struct Door {
  std::string_view what;
  std::vector<std::string_view> signs;  // one is in whatever has the pattern: a search is slow
  std::regex pattern;
  std::string_view also_open_to = "";
};

const std::vector<Door>& doors() {
  static const std::vector<Door> kDoors{
      {"a clock",
       {"clock", "time"},
       std::regex(R"(\b(steady|system|high_resolution)_clock\b)"
                  R"(|\b(clock_gettime|gettimeofday)\b)"
                  R"(|\btime\s*\(\s*(nullptr|NULL|0)\s*\))")},
      {"a lock", {"mutex"}, std::regex(R"(\bstd::(recursive_|shared_|timed_)*mutex\b)"), "report"},
      {"a thread",
       {"thread", "async", "condition_", "atomic"},
       std::regex(R"(\bstd::(thread|jthread|async|condition_variable|atomic)\w*)"
                  R"(|\bpthread_\w+)")},
      {"a sleep",
       {"sleep"},
       std::regex(R"(\b(sleep_for|sleep_until|sleep|usleep|nanosleep)\s*\()")},
      {"the environment", {"env"}, std::regex(R"(\b(secure_getenv|getenv|setenv|putenv)\b)")},
      {"entropy", {"random_device"}, std::regex(R"(\brandom_device\b)")},
  };
  return kDoors;
}

bool may_have(const std::string& line, const std::vector<std::string_view>& signs) {
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return line.find(sign) != std::string::npos; });
}

bool is_open(const Door& door, std::string_view folder) {
  return folder == door.also_open_to ||
         std::find(kWorldly.begin(), kWorldly.end(), folder) != kWorldly.end();
}

// The drivers are rooms of their own.
std::string folder_of(std::string_view path) {
  const std::size_t end = path.find('/');
  return std::string(path.substr(0, path.starts_with("drivers/") ? path.find('/', end + 1) : end));
}

// Why a file in `from` may not include one in `to`; empty if it may.
std::string include_breach(std::string_view from, std::string_view to) {
  const auto* from_place = std::find(kFolders.begin(), kFolders.end(), from);
  const auto* to_place = std::find(kFolders.begin(), kFolders.end(), to);
  if (from_place == kFolders.end() || to_place == kFolders.end()) {
    return "is not in the table of folders";
  }
  const bool banned = std::any_of(kBans.begin(), kBans.end(),
                                  [&](const Ban& ban) { return ban.from == from && ban.to == to; });
  if (banned || to_place > from_place) {
    return std::string(from) + " must not include " + std::string(to);
  }
  return "";
}

// All breaches of a file, each as "path:line: what". The path is relative to src.
std::vector<std::string> breaches(const std::string& path, const std::string& text) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
  const std::string folder = folder_of(path);
  const std::vector<std::string> lines = lines_of(text);
  const std::vector<std::string> code = lines_of(code_only(text));
  std::vector<std::string> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = path + ":" + std::to_string(i + 1) + ": ";
    std::smatch match;
    if (may_have(lines[i], {"include"}) && std::regex_search(lines[i], match, kInclude)) {
      const std::string breach = include_breach(folder, folder_of(match.str(1)));
      if (!breach.empty()) {
        found.push_back(where + "\"" + match.str(1) + "\" " + breach);
      }
    }
    for (const Door& door : doors()) {
      if (!is_open(door, folder) && may_have(code[i], door.signs) &&
          std::regex_search(code[i], match, door.pattern)) {
        found.push_back(where + "uses " + std::string(door.what) + " (" + match.str() + ")");
      }
    }
  }
  return found;
}

TEST(LayeringTest, SourcesKeepToTheirFolders) {
  const std::vector<Source> sources = sources_under(kSourceRoot / "src");
  ASSERT_GT(sources.size(), 20U) << "the sources were not found";
  for (const Source& source : sources) {
    EXPECT_THAT(breaches(source.path, source.text), IsEmpty());
  }
}

TEST(LayeringTest, EveryFolderIsInTheTable) {
  for (const auto& entry : std::filesystem::directory_iterator(kSourceRoot / "src")) {
    const std::string folder = entry.path().filename().string();
    if (folder == "drivers") {
      continue;  // its rooms are in the table
    }
    EXPECT_THAT(kFolders, testing::Contains(folder));
  }
}

// Programs that link the installed libraries would have to link these too.
TEST(LayeringTest, OnlyTheProgramNeedsALoggerOrAParserOfFlags) {
  for (const Source& source : sources_under(kSourceRoot / "src")) {
    if (folder_of(source.path) != "cli") {
      EXPECT_THAT(source.text, Not(AnyOf(HasSubstr("<spdlog/"), HasSubstr("<CLI/"))))
          << source.path;
    }
  }
}

TEST(LayeringTest, FilesStayShort) {
  for (const char* folder : {"src", "tests", "bench"}) {
    for (const Source& source : sources_under(kSourceRoot / folder)) {
      EXPECT_LE(lines_of(source.text).size(), kMaxLines) << folder << "/" << source.path;
    }
  }
}

// From here on: the checker itself, on made-up sources.

TEST(LayeringCheckerTest, FindsAnIncludeFromBelow) {
  EXPECT_THAT(breaches("scheduling/queue.cc",
                       "#include \"base/id.h\"\n#include \"drivers/virtual/clock.h\"\n"),
              ElementsAre("scheduling/queue.cc:2: \"drivers/virtual/clock.h\" scheduling must not "
                          "include drivers/virtual"));
}

TEST(LayeringCheckerTest, FindsDriversThatKnowEachOtherOrAnAlgorithm) {
  EXPECT_THAT(breaches("drivers/virtual/a.h", "#include \"drivers/realtime/b.h\""),
              ElementsAre(HasSubstr("drivers/virtual/a.h:1")));
  EXPECT_THAT(breaches("drivers/realtime/a.h", "#include \"drivers/virtual/b.h\""),
              ElementsAre(HasSubstr(":1: ")));
  EXPECT_THAT(breaches("drivers/virtual/a.h", "#include \"nodes/b.h\""),
              ElementsAre(HasSubstr(":1: ")));
  EXPECT_THAT(breaches("drivers/threads/a.h", "  # include \"nodes/b.h\""),
              ElementsAre(HasSubstr("drivers/threads must not include nodes")));
}

TEST(LayeringCheckerTest, FindsFoldersThatAreNotInTheTable) {
  EXPECT_THAT(breaches("base/a.h", "#include \"util/b.h\""), ElementsAre(HasSubstr("table")));
  EXPECT_THAT(breaches("util/a.h", "#include \"base/b.h\""), ElementsAre(HasSubstr("table")));
}

TEST(LayeringCheckerTest, AllowsWhatStandsAbove) {
  EXPECT_THAT(breaches("cli/main.cc", "#include \"drivers/virtual/a.h\"\n#include <thread>\n"),
              IsEmpty());
  EXPECT_THAT(breaches("scheduling/a.cc", "#include \"scheduling/a.h\"\n"), IsEmpty());
}

TEST(LayeringCheckerTest, FindsEveryDoorToTheWorld) {
  for (const char* line :
       {"auto t = std::chrono::steady_clock::now();", "std::chrono::system_clock::now();",
        "using C = std::chrono::high_resolution_clock;", "clock_gettime(CLOCK_MONOTONIC, &t);",
        "gettimeofday(&t, nullptr);", "srand(time(nullptr));", "std::thread t(f);",
        "std::vector<std::jthread> all;", "std::mutex m;", "std::shared_mutex m;",
        "std::condition_variable ready;", "std::atomic<int> count;", "std::atomic_flag flag;",
        "std::getenv(\"HOME\");", "std::random_device entropy;", "usleep(10);",
        "std::this_thread::sleep_for(1ms);"}) {
    EXPECT_THAT(breaches("drivers/virtual/a.cc", std::string("int a;\n") + line),
                ElementsAre(HasSubstr("drivers/virtual/a.cc:2: uses ")))
        << line;
    EXPECT_THAT(breaches("drivers/realtime/a.cc", line), IsEmpty()) << line;
    EXPECT_THAT(breaches("lab/a.cc", line), IsEmpty()) << line;
  }
}

TEST(LayeringCheckerTest, LetsTheReportLockButNotSpawn) {
  EXPECT_THAT(breaches("report/a.cc", "std::mutex m;"), IsEmpty());
  EXPECT_THAT(breaches("report/a.cc", "std::thread t;"), ElementsAre(HasSubstr("a thread")));
  EXPECT_THAT(breaches("report/a.cc", "steady_clock::now();"), ElementsAre(HasSubstr("a clock")));
}

TEST(LayeringCheckerTest, ReadsCodeAndNotProse) {
  EXPECT_THAT(breaches("drivers/virtual/a.cc",
                       "// no std::thread here\n/* nor\n a random_device */\n"
                       "auto s = \"getenv \\\" std::mutex\"; char c = '\"';\n"
                       "auto r = R\"(std::thread\n)\";\n// #include \"cli/x.h\"\n"),
              IsEmpty());
  EXPECT_THAT(breaches("drivers/virtual/a.cc", "/* a */ std::mutex m; // b\n\"x\"; std::thread t;"),
              ElementsAre(HasSubstr("a.cc:1: uses a lock (std::mutex)"),
                          HasSubstr("a.cc:2: uses a thread (std::thread)")));
}

TEST(LayeringCheckerTest, TellsWordsFromPartsOfWords) {
  EXPECT_THAT(breaches("drivers/virtual/a.cc", "int my_getenv_count = run_time(0) + asleep(1);"),
              IsEmpty());
}

}  // namespace
}  // namespace sluice
