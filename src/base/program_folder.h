#pragma once

#include <filesystem>

namespace sluice {

// The folder of the program that runs, from which it finds what was built or installed with it.
// Empty if the system does not tell.
std::filesystem::path program_folder();

}  // namespace sluice
