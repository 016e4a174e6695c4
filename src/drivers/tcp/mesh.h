#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/tcp/socket.h"

namespace sluice {

// Everybody gets the text of every rank, by rank; that of a rank that is lost is empty.
using AllGather = std::function<std::vector<std::string>(const std::string& own)>;

// Connects every process with every other one, and returns the sockets by rank; the own one is
// closed, and so are those of ranks that are lost. All processes call it together, and it fails in
// all of them or in none. `address` is where this process listens meanwhile; empty if it has none.
// Whoever connects must show a token that was drawn for these connections: others are turned away.
// `unreachable` is told which rank this process does not reach.
Result<std::vector<Socket>> connect_mesh(
    std::size_t rank, const std::string& address, const AllGather& all_gather,
    const std::function<void(std::size_t rank)>& unreachable = [](std::size_t /*rank*/) {});

}  // namespace sluice
