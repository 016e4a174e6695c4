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
      leader_(world_.leader),
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

void Supervision::tell_leader(Topic topic, const std::string& text) {
  if (leads()) {
    hear(rank_, static_cast<char>(topic) + text);
  } else {
    tell(leader_, topic, text);
  }
}

void Supervision::tell_all(Topic topic, const std::string& text) {
  world_.letters.send_to_all(static_cast<char>(topic) + text);
  hear(rank_, static_cast<char>(topic) + text);
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
  lost_[rank] = true;
  heartbeats_[rank] = {};
  world_.transport.lose(rank);
  world_.mailbox.post(PeerLost{HostId(rank)});
  if (lost_[leader_]) {
    follow_next_leader();
  }
  if (leads()) {
    stop_if_all_held();
    count_if_all_done();
  }
}

// All have heard the same of the one before. Each tells the next one what it had told that.
void Supervision::follow_next_leader() {
  leader_ = static_cast<std::size_t>(std::ranges::find(lost_, false) - lost_.begin());
  std::ranges::fill(heard_, now());
  interrupted_ = false;
  asked_.reset();
  if (stopping_ != 0 && !stopped_) {
    tell_leader(Topic::kHeld, std::to_string(world_.line.hold()));
  }
  if (said_done_) {
    tell_done();
  }
  said_last_ = said_last_ && closing_;
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
      stopping_ = static_cast<int>(number_of(rank, text));
      return tell_leader(Topic::kHeld, std::to_string(world_.line.hold()));
    case Topic::kHeld:
      return process_held(rank, number_of(rank, text));
    case Topic::kStop: {
      const auto [at, signal] = numbers_of<2>(rank, text);
      return stop(at, static_cast<int>(signal));
    }
    case Topic::kDone:
      return process_done(rank, number_of(rank, text));
    case Topic::kCount:
      asked_ = round_ = number_of(rank, text);
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
    tell_leader(Topic::kInterrupted, std::to_string(signal));
  }
}

// In the leader, after the first signal that it learns of. If all are done there is nothing to
// stop.
void Supervision::hold_all(int signal) {
  if (stopping_ == 0 && !over_) {
    tell_all(Topic::kHold, std::to_string(signal));
  }
}

void Supervision::process_held(std::size_t rank, Iteration begun) {
  furthest_ = std::max(furthest_, begun);
  held_[rank] = true;
  stop_if_all_held();
}

void Supervision::stop_if_all_held() {
  if (held_[rank_] && !stopped_ && all_others([&](std::size_t r) { return held_[r]; })) {
    tell_all(Topic::kStop, fmt::format("{} {}", furthest_, stopping_));
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
  if (leads()) {
    reports_.insert(reports_.end(), steps.begin(), steps.end());
  }
  lock.unlock();
  if (error) {
    std::rethrow_exception(error);
  }
  if (!leads() && !steps.empty()) {
    tell(leader_, Topic::kSteps, encode(steps, now()));
  }
  if (finished) {
    tell_done();
  }
}

void Supervision::tell_done() {
  const auto at = watch_.furthest_behind();
  tell_leader(Topic::kDone, std::to_string(at ? at->iteration : 0));
}

void Supervision::process_done(std::size_t rank, Iteration at) {
  done_[rank] = at;
  count_if_all_done();
}

void Supervision::count_if_all_done() {
  if (done_[rank_] && !over_ && all_others([&](std::size_t r) { return done_[r].has_value(); })) {
    census_.emplace(static_cast<int>(std::ranges::count(lost_, false)));
    count_all();
  }
}

void Supervision::count_all() { tell_all(Topic::kCount, std::to_string(round_ + 1)); }

void Supervision::answer_count() {
  if (!asked_ || !world_.mailbox.is_settled() || world_.transport.is_busy()) {
    return;
  }
  const std::int64_t round = *std::exchange(asked_, std::nullopt);
  const MessageCount count = world_.transport.count();
  tell_leader(Topic::kCounted, fmt::format("{} {} {}", round, count.sent, count.received));
}

// An answer to a round before a process was lost is void.
void Supervision::process_counted(std::int64_t round, const MessageCount& count) {
  if (!census_ || round != round_ || over_) {
    return;
  }
  const std::optional<bool> quiet = census_->add(count);
  if (quiet && !*quiet) {
    count_all();
  } else if (quiet) {
    tell_all(Topic::kAllDone);
  }
}

void Supervision::all_done() {
  over_ = true;
  world_.transport.part();
}

// The leader sends the last message, and the messages of each pair arrive in order. So no message
// is left when all close.
void Supervision::close_if_over() {
  if (closed_ || !over_ || !world_.transport.parted()) {
    return;
  }
  if (!said_last_ && !leads()) {
    tell(leader_, Topic::kBye);
    said_last_ = true;
  } else if (!said_last_ && all_others([&](std::size_t r) { return parted_[r]; })) {
    tell_all(Topic::kClose);
    said_last_ = true;
  }
  if (said_last_ && closing_ && world_.letters.all_sent()) {
    closed_ = true;
    world_.letters.close();
    world_.mailbox.close();
  }
}

void Supervision::beat() {
  const Heartbeat own = watch_.heartbeat();
  if (!leads()) {
    if (!said_last_) {
      tell(leader_, Topic::kHeartbeat, encode(own));
    }
    return expect_life(leader_);
  }
  if (said_last_) {
    return;
  }
  heartbeats_[rank_] = own;
  tell_all(Topic::kAlive);
  for (std::size_t r = 0; r < heard_.size(); ++r) {
    if (r != rank_ && !parted_[r] && !lost_[r]) {
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
