#pragma once

#include <string>
#include <vector>

namespace sluice {

// Several texts as one, and back; throws std::runtime_error at what is none.
std::string joined(const std::vector<std::string>& texts);
std::vector<std::string> split(const std::string& all);

}  // namespace sluice
