#pragma once

#include <string>

#include "cli/console.h"

namespace sluice::cli {

// Prints the summary of a training run as a table, and where its report is.
void print_training(const OrderedJson& summary, const std::string& report);

}  // namespace sluice::cli
