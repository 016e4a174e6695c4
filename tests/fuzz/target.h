#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What reads bytes that may come from anyone: from files, flags and other processes.
namespace sluice::fuzz {

// What a reader makes of an input.
struct Answer {
  bool taken = false;
  std::string message = {};  // why not
};

template <class T>
Answer answer_of(const Result<T>& result) {
  return result ? Answer{true} : Answer{false, result.error().message()};
}

struct Target {
  std::string_view name;
  std::vector<std::string> (*seeds)();  // inputs that are taken
  // A reader of files may write below the folder, which is empty at first and then its own.
  Answer (*read)(const std::string& input, const std::filesystem::path& folder);
};

std::span<const Target> file_targets();
std::span<const Target> wire_targets();
std::span<const Target> image_targets();  // only in a build with the image libraries
std::vector<Target> all_targets();

// A new folder for the files of readers, in memory where the machine has such a place.
std::filesystem::path make_folder();

// Throws std::runtime_error unless the answer is one: taken, or refused with a message.
void check_answer(const Answer& answer);

}  // namespace sluice::fuzz
