#include "drivers/mpi/mpi_supervision.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "drivers/mpi/launch.h"
#include "drivers/mpi/letter_numbers.h"
#include "drivers/mpi/step_reports.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

constexpr int kTopicTag = 1;
// Every poll and every message takes time from messages that training waits for.
const Duration kBetweenLooks = from_us(4e3);
const Duration kBetweenReports = from_us(1e4);
constexpr Duration kStall = 10 * kBeat;
constexpr Duration kBetweenWarnings = 30 * kBeat;

}  // namespace

MpiSupervision::MpiSupervision(World world) : world_(std::move(world)) {
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  heard_.assign(static_cast<std::size_t>(size_), now());
  heartbeats_.resize(static_cast<std::size_t>(size_));
  parted_.assign(static_cast<std::size_t>(size_), false);
  done_.resize(static_cast<std::size_t>(size_));
  census_.emplace(size_);
}

MpiSupervision::~MpiSupervision() {
  if (closed_) {
    MPI_Comm_free(&comm_);
  }
}

void MpiSupervision::send(const Message& message, Payload payload) {
  world_.transport.send(message, std::move(payload));
}

void MpiSupervision::accepted(const Message& message) { world_.transport.accepted(message); }

bool MpiSupervision::progress(Landing& landing) {
  // First, since MPI may complete messages of the transport meanwhile, and no data would call for
  // those.
  if (is_due(next_look_, kBetweenLooks)) {
    look_around();
  }
  return world_.transport.progress(landing);
}

void MpiSupervision::look_around() {
  listen();
  look_for_interrupt();
  pass_on_workers();
  answer_count();
  requests_.test();
  close_if_over();
  if (!closed_ && is_due(next_beat_, kBeat)) {
    beat();
  }
}

bool MpiSupervision::is_due(Time& next, Duration interval) const {
  const Time time = now();
  if (time < next) {
    return false;
  }
  next = time + interval;
  return true;
}

void MpiSupervision::stepped(std::size_t rank, Iteration iteration, std::optional<double> loss) {
  const std::lock_guard lock(mutex_);
  own_.push_back({rank, iteration, loss, now()});
}

void MpiSupervision::finished() {
  const std::lock_guard lock(mutex_);
  ++finished_;
}

void MpiSupervision::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
}

std::vector<StepReport> MpiSupervision::take_reports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

void MpiSupervision::tell(int to, Topic topic, std::string text) {
  auto letter = std::make_shared<std::string>(static_cast<char>(topic) + std::move(text));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(letter->data(), static_cast<int>(letter->size()), MPI_CHAR, to, kTopicTag, comm_,
            &request);
  requests_.add(request, [letter](const MPI_Status&) {});
}

void MpiSupervision::tell_others(Topic topic, const std::string& text) {
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) {
      tell(r, topic, text);
    }
  }
}

void MpiSupervision::listen() {
  for (;;) {
    int here = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    MPI_Improbe(MPI_ANY_SOURCE, kTopicTag, comm_, &here, &message, &status);
    if (here == 0) {
      return;
    }
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::string letter(static_cast<std::size_t>(size), '\0');
    MPI_Mrecv(letter.data(), size, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    hear(static_cast<std::size_t>(status.MPI_SOURCE), letter);
  }
}

void MpiSupervision::hear(std::size_t rank, const std::string& letter) {
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
      return process_held(number_of(rank, text));
    case Topic::kStop: {
      const auto [at, signal] = two_numbers_of(rank, text);
      return stop(at, static_cast<int>(signal));
    }
    case Topic::kDone:
      return process_done(rank, number_of(rank, text));
    case Topic::kCount:
      asked_ = true;
      return;
    case Topic::kCounted: {
      const auto [sent, received] = two_numbers_of(rank, text);
      return process_counted({sent, received});
    }
    case Topic::kAllDone:
      return all_done();
    case Topic::kBye:
      parted_[rank] = true;
      heard_last_ = std::ranges::count(parted_, true) == size_ - 1;
      return;
    case Topic::kClose:
      heard_last_ = true;
      return;
  }
  throw BadMessage(rank, fmt::format("a message of topic {}", static_cast<int>(letter[0])));
}

void MpiSupervision::look_for_interrupt() {
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
void MpiSupervision::hold_all(int signal) {
  if (stopping_ == 0 && !over_) {
    stopping_ = signal;
    tell_others(Topic::kHold);
    process_held(world_.line.hold());
  }
}

void MpiSupervision::process_held(Iteration begun) {
  furthest_ = std::max(furthest_, begun);
  if (++held_ == size_) {
    tell_others(Topic::kStop, fmt::format("{} {}", furthest_, stopping_));
    stop(furthest_, stopping_);
  }
}

void MpiSupervision::stop(Iteration at, int signal) {
  world_.line.end_at(at);
  stopped_ = signal;
}

void MpiSupervision::pass_on_workers() {
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
  const auto at = furthest_behind();
  if (rank_ == 0) {
    process_done(0, at ? at->iteration : 0);
  } else {
    tell(0, Topic::kDone, std::to_string(at ? at->iteration : 0));
  }
}

void MpiSupervision::process_done(std::size_t rank, Iteration at) {
  done_[rank] = at;
  if (std::ranges::all_of(done_, [](const auto& done) { return done.has_value(); })) {
    count_all();
  }
}

void MpiSupervision::count_all() {
  asked_ = true;
  tell_others(Topic::kCount);
}

void MpiSupervision::answer_count() {
  if (!asked_ || !world_.mailbox.is_settled() || world_.transport.is_busy()) {
    return;
  }
  asked_ = false;
  const MessageCount count = world_.transport.count();
  if (rank_ == 0) {
    process_counted(count);
  } else {
    tell(0, Topic::kCounted, fmt::format("{} {}", count.sent, count.received));
  }
}

void MpiSupervision::process_counted(const MessageCount& count) {
  const std::optional<bool> quiet = census_->add(count);
  if (quiet && !*quiet) {
    count_all();
  } else if (quiet) {
    tell_others(Topic::kAllDone);
    all_done();
  }
}

void MpiSupervision::all_done() {
  over_ = true;
  world_.transport.part();
}

// Rank 0 sends the last message, and the messages of each pair arrive in order. So no message is
// left when all close.
void MpiSupervision::close_if_over() {
  if (closed_ || !over_ || !world_.transport.parted()) {
    return;
  }
  if (!said_last_ && rank_ != 0) {
    tell(0, Topic::kBye);
    said_last_ = true;
  } else if (!said_last_ && (heard_last_ || size_ == 1)) {
    tell_others(Topic::kClose);
    said_last_ = heard_last_ = true;
  }
  if (said_last_ && heard_last_ && requests_.empty()) {
    closed_ = true;
    world_.mailbox.close();
  }
}

void MpiSupervision::beat() {
  const auto position = furthest_behind();
  if (position != position_) {
    position_ = position;
    position_since_ = now();
  }
  if (rank_ != 0) {
    if (!said_last_) {
      tell(0, Topic::kHeartbeat, encode(heartbeat()));
    }
    return expect_life(0);
  }
  if (said_last_) {
    return;
  }
  heartbeats_[0] = heartbeat();
  tell_others(Topic::kAlive);
  for (std::size_t r = 1; r < heard_.size(); ++r) {
    if (!parted_[r]) {
      expect_life(r);
    }
  }
  if (!over_) {
    look_for_early_ends();
    look_for_stalls(now());
  }
}

void MpiSupervision::look_for_early_ends() const {
  if (const auto why = describe_early_end(done_, heartbeats_); why && world_.together) {
    throw std::runtime_error(*why);
  }
}

void MpiSupervision::expect_life(std::size_t rank) const {
  if (const Duration silence = now() - heard_[rank]; silence > kSilence) {
    throw std::runtime_error(describe_silence(rank, heartbeats_[rank].host, silence));
  }
}

void MpiSupervision::look_for_stalls(Time now) {
  if (now < next_warning_) {
    return;
  }
  if (const auto stall = diagnose(heartbeats_, world_.layers, to_seconds(kStall), world_.open)) {
    world_.warn(*stall);
    next_warning_ = now + kBetweenWarnings;
  }
}

Heartbeat MpiSupervision::heartbeat() {
  return {.host = host_name(),
          .worker = position_,
          .still_seconds = to_seconds(now() - position_since_),
          .outgoing = oldest(true),
          .incoming = oldest(false)};
}

std::optional<Gate::Position> MpiSupervision::furthest_behind() const {
  const auto place = [](const Gate::Position& at) { return std::tuple(at.iteration, at.layer); };
  std::optional<Gate::Position> behind;
  for (const auto& [worker, gate] : world_.gates) {
    const Gate::Position position = gate.position();
    if (!behind || place(position) < place(*behind)) {
      behind = position;
    }
  }
  return behind;
}

std::optional<InFlight> MpiSupervision::oldest(bool outgoing) const {
  for (const PeerTransport::Transfer& transfer : world_.transport.transfers()) {
    if (transfer.outgoing == outgoing) {
      const Message& message = transfer.message;
      return InFlight{.kind = message.kind,
                      .layer = world_.chunks.layers_of(message.chunk).front(),
                      .peer = world_.topology.host_of(outgoing ? message.to : message.from).index(),
                      .seconds = to_seconds(now() - transfer.since)};
    }
  }
  return std::nullopt;
}

}  // namespace sluice
