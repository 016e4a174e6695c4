#include "drivers/processes/supervision.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "drivers/processes/letter_numbers.h"
#include "drivers/processes/step_reports.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

// Every poll and every message takes time from messages that training waits for.
const Duration kBetweenLooks = from_us(4e3);
const Duration kBetweenReports = from_us(1e4);
constexpr Duration kStall = 10 * kBeat;
constexpr Duration kBetweenWarnings = 30 * kBeat;

}  // namespace

Supervision::Supervision(World world)
    : world_(std::move(world)),
      rank_(world_.rank),
      size_(world_.topology.hosts()),
      watch_({world_.transport, world_.topology, world_.gates, world_.chunks, world_.clock}),
      lost_(size_),
      heard_(size_, now()),
      heartbeats_(size_),
      done_(size_),
      held_(size_),
      parted_(size_) {}

template <class F>
bool Supervision::all_others(F holds) const {
  for (std::size_t r = 0; r < size_; ++r) {
    if (r != rank_ && !lost_[r] && !holds(r)) {
      return false;
    }
  }
  return true;
}

void Supervision::send(const Message& message, Payload payload) {
  world_.transport.send(message, std::move(payload));
}

void Supervision::accepted(const Message& message) { world_.transport.accepted(message); }

bool Supervision::progress(Landing& landing) {
  // First, since MPI may complete messages of the transport meanwhile, and no data would call for
  // those.
  if (is_due(next_look_, kBetweenLooks)) {
    look_around();
  }
  return world_.transport.progress(landing);
}

void Supervision::look_around() {
  listen();
  look_for_interrupt();
  pass_on_workers();
  answer_count();
  world_.letters.all_sent();
  close_if_over();
  if (!closed_ && is_due(next_beat_, kBeat)) {
    beat();
  }
}

bool Supervision::is_due(Time& next, Duration interval) const {
  const Time time = now();
  if (time < next) {
    return false;
  }
  next = time + interval;
  return true;
}

void Supervision::stepped(std::size_t rank, Iteration iteration, std::optional<double> loss) {
  const std::lock_guard lock(mutex_);
  own_.push_back({rank, iteration, loss, now()});
}

void Supervision::finished() {
  const std::lock_guard lock(mutex_);
  ++finished_;
}

void Supervision::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
}

std::vector<StepReport> Supervision::take_reports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

void Supervision::tell(std::size_t to, Topic topic, const std::string& text) {
  world_.letters.send(to, static_cast<char>(topic) + text);
}

void Supervision::tell_others(Topic topic, const std::string& text) {
  for (std::size_t r = 0; r < size_; ++r) {
    if (r != rank_ && !lost_[r]) {
      tell(r, topic, text);
    }
  }
}

void Supervision::listen() {
  while (const auto letter = world_.letters.take()) {
    if (letter->text) {
      hear(letter->from, *letter->text);
    } else {
      lose(letter->from);
    }
  }
}

// Its protocol ends the phase if that cannot go on. All others are told too, and begin to count
// anew without it: nobody counts what went to and from it any more.
void Supervision::lose(std::size_t rank) {
  if (rank == 0) {
    throw std::runtime_error("rank 0 was lost, which leads the others");
  }
  lost_[rank] = true;
  heartbeats_[rank] = {};
  world_.transport.lose(rank);
  world_.mailbox.post(PeerLost{HostId(rank)});
  if (rank_ == 0) {
    stop_if_all_held();
    count_if_all_done();
  }
}

void Supervision::hear(std::size_t rank, const std::string& letter) {
  if (letter.empty()) {
    throw BadMessage(rank, "an empty message");
  }
  heard_[rank] = now();
  const std::string text = letter.substr(1);
  switch (static_cast<Topic>(letter[0])) {
    case Topic::kSteps: {
      auto steps = decode_steps(text, world_.workers, heard_[rank]);
      if (!steps) {
        throw BadMessage(rank, steps.error().message());
      }
      const std::lock_guard lock(mutex_);
      std::ranges::move(*std::move(steps), std::back_inserter(reports_));
      return;
    }
    case Topic::kHeartbeat: {
      auto heartbeat = decode_heartbeat(text);
      if (!heartbeat) {
        throw BadMessage(rank, heartbeat.error().message());
      }
      heartbeats_[rank] = *std::move(heartbeat);
      return;
    }
    case Topic::kAlive:
      return;
    case Topic::kInterrupted:
      return hold_all(static_cast<int>(number_of(rank, text)));
    case Topic::kHold:
      return tell(0, Topic::kHeld, std::to_string(world_.line.hold()));
    case Topic::kHeld:
      return process_held(rank, number_of(rank, text));
    case Topic::kStop: {
      const auto [at, signal] = numbers_of<2>(rank, text);
      return stop(at, static_cast<int>(signal));
    }
    case Topic::kDone:
      return process_done(rank, number_of(rank, text));
    case Topic::kCount:
      asked_ = number_of(rank, text);
      return;
    case Topic::kCounted: {
      const auto [round, sent, received] = numbers_of<3>(rank, text);
      return process_counted(round, {sent, received});
    }
    case Topic::kAllDone:
      return all_done();
    case Topic::kBye:
      parted_[rank] = true;
      return;
    case Topic::kClose:
      closing_ = true;
      return;
  }
  throw BadMessage(rank, fmt::format("a message of topic {}", static_cast<int>(letter[0])));
}

void Supervision::look_for_interrupt() {
  if (over_ || interrupted_ || !world_.interrupted) {
    return;
  }
  if (const int signal = world_.interrupted(); signal != 0) {
    interrupted_ = true;
    if (rank_ == 0) {
      hold_all(signal);
    } else {
      tell(0, Topic::kInterrupted, std::to_string(signal));
    }
  }
}

// On rank 0, after the first signal that it learns of. If all are done there is nothing to stop.
void Supervision::hold_all(int signal) {
  if (stopping_ == 0 && !over_) {
    stopping_ = signal;
    tell_others(Topic::kHold);
    process_held(0, world_.line.hold());
  }
}

void Supervision::process_held(std::size_t rank, Iteration begun) {
  furthest_ = std::max(furthest_, begun);
  held_[rank] = true;
  stop_if_all_held();
}

void Supervision::stop_if_all_held() {
  if (held_[0] && !stopped_ && all_others([&](std::size_t r) { return held_[r]; })) {
    tell_others(Topic::kStop, fmt::format("{} {}", furthest_, stopping_));
    stop(furthest_, stopping_);
  }
}

void Supervision::stop(Iteration at, int signal) {
  world_.line.end_at(at);
  stopped_ = signal;
}

void Supervision::pass_on_workers() {
  std::unique_lock lock(mutex_);
  const std::exception_ptr error = error_;
  const bool finished = !said_done_ && finished_ == world_.gates.size();
  said_done_ = said_done_ || finished;
  std::vector<StepReport> steps;
  if (finished || is_due(next_report_, kBetweenReports)) {
    steps.swap(own_);
  }
  if (rank_ == 0) {
    reports_.insert(reports_.end(), steps.begin(), steps.end());
  }
  lock.unlock();
  if (error) {
    std::rethrow_exception(error);
  }
  if (rank_ != 0 && !steps.empty()) {
    tell(0, Topic::kSteps, encode(steps, now()));
  }
  if (!finished) {
    return;
  }
  const auto at = watch_.furthest_behind();
  if (rank_ == 0) {
    process_done(0, at ? at->iteration : 0);
  } else {
    tell(0, Topic::kDone, std::to_string(at ? at->iteration : 0));
  }
}

void Supervision::process_done(std::size_t rank, Iteration at) {
  done_[rank] = at;
  count_if_all_done();
}

void Supervision::count_if_all_done() {
  if (done_[0] && !over_ && all_others([&](std::size_t r) { return done_[r].has_value(); })) {
    census_.emplace(static_cast<int>(std::ranges::count(lost_, false)));
    count_all();
  }
}

void Supervision::count_all() {
  asked_ = ++round_;
  tell_others(Topic::kCount, std::to_string(round_));
}

void Supervision::answer_count() {
  if (!asked_ || !world_.mailbox.is_settled() || world_.transport.is_busy()) {
    return;
  }
  const std::int64_t round = *std::exchange(asked_, std::nullopt);
  const MessageCount count = world_.transport.count();
  if (rank_ == 0) {
    process_counted(round, count);
  } else {
    tell(0, Topic::kCounted, fmt::format("{} {} {}", round, count.sent, count.received));
  }
}

// An answer to a round before a process was lost is void.
void Supervision::process_counted(std::int64_t round, const MessageCount& count) {
  if (round != round_ || over_) {
    return;
  }
  const std::optional<bool> quiet = census_->add(count);
  if (quiet && !*quiet) {
    count_all();
  } else if (quiet) {
    tell_others(Topic::kAllDone);
    all_done();
  }
}

void Supervision::all_done() {
  over_ = true;
  world_.transport.part();
}

// Rank 0 sends the last message, and the messages of each pair arrive in order. So no message is
// left when all close.
void Supervision::close_if_over() {
  if (closed_ || !over_ || !world_.transport.parted()) {
    return;
  }
  if (!said_last_ && rank_ != 0) {
    tell(0, Topic::kBye);
    said_last_ = true;
  } else if (!said_last_ && all_others([&](std::size_t r) { return parted_[r]; })) {
    tell_others(Topic::kClose);
    said_last_ = closing_ = true;
  }
  if (said_last_ && closing_ && world_.letters.all_sent()) {
    closed_ = true;
    world_.letters.close();
    world_.mailbox.close();
  }
}

void Supervision::beat() {
  const Heartbeat own = watch_.heartbeat();
  if (rank_ != 0) {
    if (!said_last_) {
      tell(0, Topic::kHeartbeat, encode(own));
    }
    return expect_life(0);
  }
  if (said_last_) {
    return;
  }
  heartbeats_[0] = own;
  tell_others(Topic::kAlive);
  for (std::size_t r = 1; r < heard_.size(); ++r) {
    if (!parted_[r] && !lost_[r]) {
      expect_life(r);
    }
  }
  if (!over_) {
    look_for_early_ends();
    look_for_stalls(now());
  }
}

void Supervision::look_for_early_ends() const {
  if (const auto why = describe_early_end(done_, heartbeats_); why && world_.together) {
    throw std::runtime_error(*why);
  }
}

void Supervision::expect_life(std::size_t rank) const {
  if (const Duration silence = now() - heard_[rank]; silence > kSilence) {
    throw std::runtime_error(describe_silence(rank, heartbeats_[rank].host, silence));
  }
}

void Supervision::look_for_stalls(Time now) {
  if (now < next_warning_) {
    return;
  }
  if (const auto stall = diagnose(heartbeats_, world_.layers, to_seconds(kStall), world_.open)) {
    world_.warn(*stall);
    next_warning_ = now + kBetweenWarnings;
  }
}

}  // namespace sluice
