#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "drivers/tcp/socket.h"

namespace sluice {

// Sends these bytes and receives as many, both at once, over connections in use, which may be the
// same one. Returns when both are done; waits no longer than `limit` for either side to move.
Result<void> exchange_bytes(const Socket& to, std::span<const std::byte> out, const Socket& from,
                            std::span<std::byte> in, Duration limit);

}  // namespace sluice
