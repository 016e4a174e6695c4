#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// What goes over the connection between a process and the hub, which relays texts and tells
// everybody who is lost. On the wire: the kind, one byte; rank and channel, 4 bytes each; the
// length of the text, 8 bytes; the text. Numbers are little-endian.
struct HubFrame {
  enum class Kind : char {
    kHello = 'h',      // to the hub, first: the rank, the token of the run, and in the channel
                       // whether it joins a run that goes on without this rank
    kText = 't',       // to the hub: whom it is for; from the hub: whom it is from
    kToAll = 'w',      // to the hub: a text for all others that count. All get it at the same place
                       // between what they hear of losses, or nobody does
    kBeat = 'b',       // both ways, twice a second; one with a channel comes back from the process
    kLost = 'l',       // from the hub: this rank, of which life (the channel), and why
    kHeard = 'k',      // to the hub: this process knows that, and sends the rank nothing more
    kCutOff = 'c',     // to the hub: the connection with this rank has broken, and it is not lost
    kOutlive = 'o',    // to the hub: the ranks that the others may go on without
    kBeginning = 'g',  // to the hub, from rank 0: what who joins later has to know
    kReady = 'r',      // to the hub: this process waits to be let in; from the hub, to all: this
                       // rank does, in which life (the channel)
    kAdmit = 'a',      // to the hub, from who leads: a kToAll, for these ranks as well, which count
                       // from here on: how many, and each with its life; more may follow
    kSignal = 's',     // from the hub: as if this signal had come
    kFail = 'f',       // to the hub: all should end with this code
    kEnd = 'e',        // from the hub: end at once, with this code
    kBye = 'q',        // to the hub: this process leaves
  };

  Kind kind = Kind::kBeat;
  std::uint32_t rank = 0;
  std::uint32_t channel = 0;
  std::string text = {};

  bool operator==(const HubFrame&) const = default;
};

// The channel of a kHello of who joins a run that goes on.
inline constexpr std::uint32_t kJoins = 1;

std::string encode(const HubFrame& frame);

// Cuts a stream of bytes into frames. It holds no more than has come.
class HubFrameReader {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next frame, if it has come whole. Throws std::runtime_error at what is none, or has a text
  // longer than `limit`.
  std::optional<HubFrame> next(std::uint64_t limit = kMaxText);

  static constexpr std::uint64_t kMaxText = std::uint64_t{1} << 40U;

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of what has not been taken
};

}  // namespace sluice
