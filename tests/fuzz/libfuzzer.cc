// The same readers under libFuzzer: SLUICE_FUZZ_TARGET names one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "fuzz/target.h"

namespace {

using namespace sluice::fuzz;

const Target& chosen() {
  static const std::vector<Target> targets = all_targets();
  static const Target& target = [&]() -> const Target& {
    const char* name = std::getenv("SLUICE_FUZZ_TARGET");
    const auto found =
        std::ranges::find(targets, std::string_view(name == nullptr ? "" : name), &Target::name);
    if (found == targets.end()) {
      fmt::print(stderr, "SLUICE_FUZZ_TARGET must name a target\n");
      std::exit(2);
    }
    return *found;
  }();
  return target;
}

const std::filesystem::path& own_folder() {
  static const std::filesystem::path folder = make_folder();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check_answer(chosen().read(input, own_folder()));
  return 0;
}
