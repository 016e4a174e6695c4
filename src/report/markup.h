#pragma once

#include <string>
#include <string_view>

namespace sluice {

// Text from anywhere as the content of an HTML or SVG element, or as a quoted attribute. Control
// characters become blanks, and bytes that are not UTF-8 question marks.
std::string escaped(std::string_view text);

}  // namespace sluice
