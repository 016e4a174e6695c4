#pragma once

#include <string_view>

namespace sluice {

// The look of a page: light and dark, on a wide screen and on a phone.
std::string_view page_css();

}  // namespace sluice
