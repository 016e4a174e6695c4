#include "drivers/hub/hub.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "drivers/tcp/token.h"

namespace sluice {
namespace {

using Kind = HubFrame::Kind;

}  // namespace

Result<Hub> Hub::open(const std::string& address, std::size_t processes) {
  auto listening = listen_at(address);
  if (!listening) {
    return listening.error();
  }
  HubAddress here{endpoint_of(*listening), draw_token()};
  put_to_use(*listening);
  return Hub(*std::move(listening), std::move(here), processes);
}

Hub::Hub(Socket listening, HubAddress address, std::size_t processes)
    : listening_(std::move(listening)), address_(std::move(address)), seats_(processes) {}

std::vector<Hub::Happening> Hub::turn(Duration limit) {
  wait(limit);
  accept_all();
  greet_all();
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    serve(r);
  }
  look_after_all();
  settle_cuts();
  return happened();
}

std::vector<Hub::Happening> Hub::happened() { return std::exchange(happenings_, {}); }

void Hub::wait(Duration limit) const {
  std::vector<pollfd> wanted{{listening_.descriptor(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_) {
    wanted.push_back({stranger.line.descriptor(), POLLIN, 0});
  }
  for (const Seat& seat : seats_) {
    if (seat.line.is_open()) {
      const int events = POLLIN | (seat.line.has_more_to_write() ? POLLOUT : 0);
      wanted.push_back({seat.line.descriptor(), static_cast<short>(events), 0});
    }
  }
  poll(wanted.data(), wanted.size(), static_cast<int>(to_us(limit) / 1e3));
}

bool Hub::is_over() const {
  return std::ranges::any_of(seats_, [](const Seat& seat) { return seat.state == State::kLeft; });
}

void Hub::leave(std::size_t rank) {
  seats_[rank].state = State::kLeft;
  seats_[rank].waits = false;
  seats_[rank].line.close();
  cuts_.forget(rank);
  knows_of_all_losses(rank);
  for (std::size_t r = 0; r < seats_.size() && is_over(); ++r) {
    if (seats_[r].waits) {
      send(r, {.kind = Kind::kEnd});
    }
  }
}

void Hub::serve(std::size_t rank) {
  Seat& seat = seats_[rank];
  if (!seat.line.is_open()) {
    return;
  }
  const bool open = seat.line.read() && seat.line.write();
  if (seat.line.take_sign()) {
    seat.heard = awake_.now();
  }
  try {
    while (seat.line.is_open()) {
      const auto frame = seat.line.frames().next();
      if (!frame) {
        break;
      }
      take(rank, *frame);
    }
  } catch (const std::runtime_error& error) {
    return lose(
        {.rank = rank, .lost = fmt::format("it sent the hub {}", error.what()), .code = {}});
  }
  if (!open && seat.state == State::kKnocking) {
    seat.state = State::kLost;
    seat.line.close();
  } else if (!open && was_sent_home(seat)) {
    leave(rank);
  } else if (!open && seat.state == State::kHere) {
    lose({.rank = rank, .lost = "its connection was closed", .code = {}});
  }
}

void Hub::take(std::size_t rank, const HubFrame& frame) {
  const auto expect_rank = [&](std::string_view what) {
    if (frame.rank >= seats_.size()) {
      throw std::runtime_error(fmt::format("{} rank {}", what, frame.rank));
    }
  };
  switch (frame.kind) {
    case Kind::kText:
      expect_rank("a text for");
      return send(frame.rank, {.kind = Kind::kText,
                               .rank = static_cast<std::uint32_t>(rank),
                               .channel = frame.channel,
                               .text = frame.text});
    case Kind::kToAll:
      return send_to_all(rank, frame);
    case Kind::kAdmit:
      count_in(joining_in(frame.text));
      return send_to_all(rank, frame);
    case Kind::kOutlive: {
      std::istringstream ranks(frame.text);
      std::ranges::for_each(seats_, [](Seat& seat) { seat.outlived = false; });
      for (std::size_t r = 0; ranks >> r && r < seats_.size();) {
        seats_[r].outlived = true;
      }
      return;
    }
    case Kind::kFail:
      happenings_.push_back({.rank = rank, .lost = "", .code = static_cast<int>(frame.rank)});
      return end_all(static_cast<int>(frame.rank));
    case Kind::kHeard:
      expect_rank("that it has heard of");
      if (frame.channel == seats_[frame.rank].life) {
        seats_[frame.rank].unaware.erase(rank);
        let_in_if_all_know(frame.rank);
      }
      return;
    case Kind::kCutOff:
      expect_rank("that it is cut off from");
      return note_cut(rank, frame.rank);
    case Kind::kBeginning:
      beginning_ = frame.text;
      return;
    case Kind::kReady:
      for (std::size_t r = 0; r < seats_.size(); ++r) {
        if (r != rank && seats_[r].state == State::kHere) {
          send(r, {.kind = Kind::kReady,
                   .rank = static_cast<std::uint32_t>(rank),
                   .channel = seats_[rank].life});
        }
      }
      return;
    case Kind::kBye:
      return leave(rank);
    case Kind::kBeat:
      return beat_came_back(seats_[rank], frame.channel);
    default:
      throw std::runtime_error("what only the hub sends");
  }
}

void Hub::send(std::size_t rank, HubFrame frame) {
  Seat& seat = seats_[rank];
  if (seat.state == State::kHere) {
    seat.line.add(frame);
  } else if (seat.state != State::kLost && seat.state != State::kKnocking) {
    seat.waiting.push_back(std::move(frame));
  }
}

void Hub::send_to_all(std::size_t from, const HubFrame& frame) {
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    if (r != from && !seats_[r].waits) {
      send(r, {.kind = Kind::kText,
               .rank = static_cast<std::uint32_t>(from),
               .channel = frame.channel,
               .text = frame.text});
    }
  }
}

void Hub::lose(const Happening& loss) {
  const std::size_t rank = loss.rank;
  const std::string& why = loss.lost;
  Seat& lost = seats_[rank];
  lost.state = State::kLost;
  cuts_.forget(rank);
  if (lost.line.is_open()) {  // in case it lives
    lost.line.add({.kind = Kind::kLost, .rank = static_cast<std::uint32_t>(rank), .text = why});
    lost.line.write();
  }
  lost.line.close();
  lost.waiting.clear();
  lost.why = why;
  lost.waits = false;
  lost.unaware.clear();
  happenings_.push_back(loss);
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    if (r == rank) {
      continue;
    }
    if (seats_[r].state == State::kHere) {
      lost.unaware.insert(r);
    }
    send(r, {.kind = Kind::kLost,
             .rank = static_cast<std::uint32_t>(rank),
             .channel = lost.life,
             .text = why});
  }
  knows_of_all_losses(rank);
}

void Hub::note_cut(std::size_t one, std::size_t other) {
  if (one != other && seats_[one].state == State::kHere && seats_[other].state == State::kHere) {
    cuts_.add(one, other, clock_.now());
  }
}

void Hub::settle_cuts() {
  const auto outlived = [this](std::size_t rank) { return is_outlived(rank); };
  while (const auto verdict = cuts_.settle(clock_.now(), outlived)) {
    if (verdict->ends) {
      cuts_ = {};
      happenings_.push_back(
          {.rank = verdict->rank, .lost = "", .code = EXIT_FAILURE, .cut_off = verdict->other});
      return end_all(EXIT_FAILURE);
    }
    lose({.rank = verdict->rank,
          .lost = fmt::format("its connection with rank {} broke, while both reach launch",
                              verdict->other),
          .code = {},
          .cut_off = verdict->other});
  }
}

void Hub::beat(Seat& seat, Time now) {
  beats_ = std::max<std::uint32_t>(1, beats_ + 1);
  seat.beats.emplace_back(beats_, now);
  seat.line.add({.kind = Kind::kBeat, .channel = beats_});
}

// The process's own beats have no number; others come back in order.
void Hub::beat_came_back(Seat& seat, std::uint32_t number) {
  if (!seat.beats.empty() && seat.beats.front().first == number) {
    round_trips_.add(clock_.now() - seat.beats.front().second);
    seat.beats.pop_front();
  }
}

void Hub::look_after_all() {
  const Time now = clock_.now();
  const Time awake = awake_.now();
  const bool beats = now >= next_beat_;
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    Seat& seat = seats_[r];
    if (seat.state != State::kHere) {
      continue;
    }
    const Duration silence = awake - seat.heard;
    if (silence > (seat.outlived ? kSilenceOutlived : kSilenceAtHub)) {
      lose({.rank = r,
            .lost = fmt::format("no sign of life for {:.0f} s", to_seconds(silence)),
            .code = {},
            .silent = true});
    } else if (beats && !seat.line.has_more_to_write()) {
      beat(seat, now);
    }
  }
  next_beat_ = beats ? now + kHubBeat : next_beat_;
}

std::vector<Hub::Happening> Hub::ended(std::size_t rank, bool well, const std::string& why) {
  serve(rank);  // what it said last
  Seat& seat = seats_[rank];
  if ((seat.state == State::kExpected && well) || was_sent_home(seat)) {
    leave(rank);
  }
  if (seat.state == State::kHere || seat.state == State::kExpected) {
    lose({.rank = rank, .lost = why, .code = {}});
  }
  return happened();
}

bool Hub::signal(std::size_t rank, int signal) {
  if (seats_[rank].state != State::kHere) {
    return false;
  }
  send(rank, {.kind = Kind::kSignal, .rank = static_cast<std::uint32_t>(signal)});
  return true;
}

void Hub::end_all(int code) {
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    if (seats_[r].state == State::kHere) {
      send(r, {.kind = Kind::kEnd, .rank = static_cast<std::uint32_t>(code)});
    }
  }
}

}  // namespace sluice
