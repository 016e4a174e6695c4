#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sluice {

// A typed index; ids of different kinds do not mix.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t value) : value_(static_cast<std::uint32_t>(value)) {}
  constexpr std::size_t index() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::uint32_t value_ = 0;
};

using HostId = Id<struct HostTag>;    // nodes with one network interface and one egress queue
using NodeId = Id<struct NodeTag>;    // a worker or a server; workers come first
using LayerId = Id<struct LayerTag>;  // in the order of first use by the forward pass
using ChunkId = Id<struct ChunkTag>;  // what is exchanged as a unit

// Counts batches; iteration t runs forward on the parameters that t updates have produced.
using Iteration = std::int64_t;

}  // namespace sluice

template <class Tag>
struct std::hash<sluice::Id<Tag>> {
  std::size_t operator()(sluice::Id<Tag> id) const noexcept { return id.index(); }
};
