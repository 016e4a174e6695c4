#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sluice {

// A number that names one thing of a kind; ids of different kinds do not mix.
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

using HostId = Id<struct HostTag>;    // a machine: one network interface, one egress queue
using NodeId = Id<struct NodeTag>;    // a worker or a server; workers come first
using LayerId = Id<struct LayerTag>;  // in the order of first use by the forward pass
using ChunkId = Id<struct ChunkTag>;  // what is synchronised as one piece

// Counts passes over the network; iteration t runs forward on parameters that t updates have made.
using Iteration = std::int64_t;

}  // namespace sluice

template <class Tag>
struct std::hash<sluice::Id<Tag>> {
  std::size_t operator()(sluice::Id<Tag> id) const noexcept { return id.index(); }
};
