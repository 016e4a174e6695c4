#include "base/program_folder.h"

#include <system_error>

namespace sluice {

std::filesystem::path program_folder() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
}

}  // namespace sluice
