#pragma once

#include <cstddef>
#include <string>

namespace sluice {

// The look of all charts, in pages and in files of their own. An element of class "chart" holds the
// chart; an element of a series' class has its colour as `color`, which "line", "dot", "area" and
// "bar" draw with. Light and dark.
std::string chart_css();

// Colours that are told apart in most kinds of colour blindness; later series repeat them, with
// dashes.
std::string series_class(std::size_t index);
std::string series_dashes(std::size_t index);

}  // namespace sluice
