#pragma once

#include <filesystem>

namespace sluice {

// The folder of the running program, where it looks for what was built or installed with it.
// Empty if the system does not tell.
std::filesystem::path program_folder();

}  // namespace sluice
