#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "drivers/hub/cuts.h"
#include "drivers/hub/hub_admission.h"
#include "drivers/hub/hub_line.h"
#include "drivers/hub/round_trips.h"
#include "drivers/hub/waking_clock.h"
#include "drivers/realtime/clock.h"

namespace sluice {

// A process that says nothing for this long is lost: where the others go on, and where they end.
inline const Duration kSilenceOutlived = from_us(3e6);
inline const Duration kSilenceAtHub = from_us(7e6);
inline const Duration kHubBeat = from_us(5e5);

// Where processes find the hub of their run, and what they must show there.
struct HubAddress {
  Endpoint endpoint;
  std::string token;
};

// Where the processes of a run meet, in the launcher: it relays their texts, and tells all others
// when one is lost. All calls come from one thread.
//
// A rank that was lost, and that the others go on without, may come back in another process: its
// next life. The hub lets it in when everybody knows of the loss, so that nothing comes to it that
// was meant for its predecessor, and gives it what rank 0 wanted it to know. Then it is up to who
// leads when the others count it in again. The run is over once somebody leaves.
class Hub {
 public:
  // Something that the launcher should know of.
  struct Happening {
    std::size_t rank;
    std::string lost;                         // why; empty: it is not lost, but:
    std::optional<int> code;                  // it wants all to end with this
    bool silent = false;                      // it was lost because nothing came of it
    bool is_back = false;                     // it is not lost, but was, and joins the others again
    std::optional<std::size_t> cut_off = {};  // it is lost, or all end, because it does not reach
                                              // this rank
  };

  // Of a run of so many processes; listens at this address.
  static Result<Hub> open(const std::string& address, std::size_t processes);

  const HubAddress& address() const { return address_; }

  // Moves what there is to move; waits for it no longer than `limit`.
  std::vector<Happening> turn(Duration limit);

  // The process of this rank has ended. That is a loss unless it had left, or had never come and
  // ended well.
  std::vector<Happening> ended(std::size_t rank, bool well, const std::string& why);
  // Passes a signal on; false if the rank is not there.
  bool signal(std::size_t rank, int signal);
  // All that are here end.
  void end_all(int code);
  // Whether the others may go on without it.
  bool is_outlived(std::size_t rank) const { return seats_[rank].outlived; }
  // Whether a lost rank could join the others now.
  bool takes_joiners() const { return beginning_ && !is_over(); }
  // Of heartbeats with all processes until now.
  const RoundTrips& round_trips() const { return round_trips_; }

 private:
  enum class State { kExpected, kHere, kLeft, kLost, kKnocking };
  struct Seat {
    State state = State::kExpected;
    HubLine line;                   // once it is here
    std::vector<HubFrame> waiting;  // until then
    Time heard{0};                  // on the waking clock
    bool outlived = false;
    std::uint32_t life = 0;
    std::string why;                                   // it was lost
    std::set<std::size_t> unaware;                     // of the loss
    bool waits = false;                                // to be counted in
    std::deque<std::pair<std::uint32_t, Time>> beats;  // under way: the number, and since when
  };

  Hub(Socket listening, HubAddress address, std::size_t processes);

  void wait(Duration limit) const;
  void accept_all();
  void greet_all();
  bool greet(HubLine& line);
  void greet_joiner(std::size_t rank, HubLine& line);
  void let_in_if_all_know(std::size_t rank);
  void knows_of_all_losses(std::size_t rank);
  void leave(std::size_t rank);
  bool is_over() const;
  // It came too late to join, and was told to end.
  bool was_sent_home(const Seat& seat) const { return seat.waits && is_over(); }
  void serve(std::size_t rank);
  void take(std::size_t rank, const HubFrame& frame);
  void send(std::size_t rank, HubFrame frame);
  void send_to_all(std::size_t from, const HubFrame& frame);
  void count_in(const Lives& joining);
  void lose(const Happening& loss);
  void note_cut(std::size_t one, std::size_t other);
  void settle_cuts();
  void beat(Seat& seat, Time now);
  void beat_came_back(Seat& seat, std::uint32_t number);
  void look_after_all();
  std::vector<Happening> happened();

  Socket listening_;
  HubAddress address_;
  std::vector<Seat> seats_;  // by rank
  struct Stranger {
    HubLine line;
    Time since;
  };
  std::vector<Stranger> strangers_;       // that have not shown the token yet
  std::optional<std::string> beginning_;  // see HubFrame
  std::vector<Happening> happenings_;
  Cuts cuts_;
  Clock clock_;
  WakingClock awake_;  // for the silence of others
  Time next_beat_{0};
  std::uint32_t beats_ = 0;  // the number of the last one
  RoundTrips round_trips_;
};

// The address of this machine from which a host is reached, for listening there; an error if its
// name is not known.
Result<std::string> address_towards(const std::string& host);

}  // namespace sluice
