#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/zeroed_buffer.h"
#include "model/layer.h"
#include "nodes/assembly.h"
#include "session/extent.h"

namespace sluice {

// A process with servers only has neither model nor data. This is what the leader tells it.

// The layers, and the length of the run without its sharding.
struct Outline {
  std::vector<Layer> layers;
  Extent extent;
};

std::string to_text(const Outline& outline);
// Throws if the text is not valid.
Outline outline_from(const std::string& text);

// The parameters of the chunks that the servers of a host keep, one after the other, as bytes.
std::string shards_of(const Assembly& assembly, HostId host, std::span<const float> parameters);
// The same in their places; the other parameters are zero. Throws if the bytes are not as many.
ZeroedBuffer shards_from(const std::string& bytes, const Assembly& assembly, HostId host);

}  // namespace sluice
