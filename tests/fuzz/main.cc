// Feeds readers with inputs that are nearly right.
//
//   sluice_fuzz [--inputs N] [--seed S] [--from K] [TARGET ...]
//   sluice_fuzz --write-seeds FOLDER
//
// All targets unless some are named. What fails is reported with the command that repeats it. The
// second form writes the inputs from which all others are made.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/allocation.h"
#include "fuzz/mutation.h"
#include "fuzz/target.h"

namespace {

using namespace sluice::fuzz;

// What a reader may take at once, whatever the input says of its own length.
constexpr std::size_t kBytesPerByte = 256;
constexpr std::size_t kBytesAtLeast = 32 << 20;  // files are read in long blocks

struct Options {
  std::uint64_t inputs = 10'000;
  std::uint64_t seed = 1;
  std::uint64_t from = 0;
  std::vector<Target> targets = {};
};

int refuse(const std::string& why) {
  fmt::print(stderr, "sluice_fuzz: {}\n", why);
  return 2;
}

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string repeated_by(const Target& target, std::uint64_t seed, std::uint64_t input) {
  return fmt::format("sluice_fuzz --seed {} --from {} --inputs 1 {}", seed, input, target.name);
}

// Crashes end the process: a handler can only write what was prepared.
char crash_note[256];
void on_crash(int signal) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, crash_note, std::strlen(crash_note));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int write_seeds(const std::filesystem::path& folder) {
  for (const Target& target : all_targets()) {
    std::filesystem::create_directories(folder / target.name);
    for (const std::string& seed : target.seeds()) {
      const std::string name = fmt::format("seed-{:016x}", std::hash<std::string>()(seed));
      std::ofstream(folder / target.name / name, std::ios::binary) << seed;
    }
  }
  return 0;
}

// Returns whether all inputs were answered.
bool run(const Target& target, const Options& options, const std::filesystem::path& folder) {
  const std::vector<std::string> seeds = target.seeds();
  for (const std::string& seed : seeds) {
    if (const Answer answer = target.read(seed, folder); !answer.taken) {
      fmt::print(stderr, "{}: a seed was refused: {}\n", target.name, answer.message);
      return false;
    }
  }
  std::uint64_t taken = 0;
  for (std::uint64_t i = options.from; i < options.from + options.inputs; ++i) {
    sluice::Random random(options.seed, i);
    const std::string input = mutated(seeds, random);
    const std::string again = repeated_by(target, options.seed, i);
    fmt::format_to_n(crash_note, sizeof crash_note - 1, "crashed; repeat it with: {}\n{}", again,
                     '\0');
    try {
      const AllocationLimit limit(kBytesAtLeast + kBytesPerByte * input.size());
      const Answer answer = target.read(input, folder);
      check_answer(answer);
      taken += answer.taken ? 1 : 0;
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}: {}\nrepeat it with: {}\n", target.name, e.what(), again);
      return false;
    }
  }
  fmt::print("{}: {} inputs, {} taken\n", target.name, options.inputs, taken);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--write-seeds") {
    return write_seeds(arguments[1]);
  }
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--inputs" || name == "--seed" || name == "--from") {
      std::uint64_t& number = name == "--inputs" ? options.inputs
                              : name == "--seed" ? options.seed
                                                 : options.from;
      if (++i == arguments.size() || !read_number(arguments[i], number)) {
        return refuse(fmt::format("{} needs a number", name));
      }
      continue;
    }
    const auto targets = all_targets();
    const auto found = std::ranges::find(targets, name, &Target::name);
    if (found == targets.end()) {
      return refuse(fmt::format("there is no target {}", name));
    }
    options.targets.push_back(*found);
  }
  if (options.targets.empty()) {
    options.targets = all_targets();
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
    std::signal(signal, on_crash);
  }
  const std::filesystem::path folder = make_folder();
  const bool answered = std::ranges::all_of(
      options.targets, [&](const Target& target) { return run(target, options, folder); });
  std::filesystem::remove_all(folder);
  return answered ? 0 : 1;
}
