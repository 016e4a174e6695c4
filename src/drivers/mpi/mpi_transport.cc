#include "drivers/mpi/mpi_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "drivers/realtime/loan.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

constexpr int kFrameTag = 1;
constexpr int kPayloadTag = 2;

// A loop without work polls MPI again after a sixteenth of the time in which nothing moved, so that
// polling extends a silence by at most that share. It may poll more often while its workers wait,
// since their cores are free, and less often while nothing is in flight.
const Duration kBriefNap = from_us(20);
const Duration kShortNap = from_us(50);
// Where data wakes the loop, in case some data does not.
const Duration kWatchedNap = from_us(200);
const Duration kLongNap = from_us(1000);
constexpr int kNapsInSilence = 16;
// So often the loop looks at once when data comes but no message is complete: a long message comes
// in many fragments, and data may be for somebody else.
constexpr int kVainLooks = 3;
// How long nothing may move in a sum before the loop sleeps: the other processes are working on it,
// and take less time than a sleep.
const Duration kAttention = from_us(200);

}  // namespace

MpiTransport::MpiTransport(World world)
    : world_(std::move(world)),
      inline_bytes_(world_.topology.on_one_machine() ? kInlineInMemory : kInlineBytes),
      sums_(world_.chunks.size(), world_.first + 1) {
  for (const Chunk& chunk : world_.chunks.all()) {
    if (chunk.range.size() * kFloatBytes > std::numeric_limits<int>::max()) {
      throw std::runtime_error(
          fmt::format("a chunk of {} parameters is more than MPI sends at once; cut the layers "
                      "with --partition "
                      "slice",
                      chunk.range.size()));
    }
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  int size = 1;
  MPI_Comm_size(comm_, &size);
  peers_ = static_cast<std::size_t>(size) - 1;
  check(world_.topology.hosts() == peers_ + 1, "every host is a process");
  checks_.emplace(world_.topology, world_.rules, static_cast<std::size_t>(rank_));
  if (world_.sums_in_memory) {
    open_window();
  }
  await_frame();
}

void MpiTransport::open_window() {
  int first = first_sharing_memory(comm_);
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MAX, comm_);
  if (first != 0) {
    throw std::runtime_error(
        "the processes cannot share memory; use another --collective than shared-memory");
  }
  window_.emplace(comm_, SharedSums::area_bytes(peers_ + 1), SharedSums::kAlignment);
  SharedSums::prepare(window_->areas()[static_cast<std::size_t>(rank_)]);
  MPI_Barrier(comm_);
  shared_sums_.emplace(window_->areas(), static_cast<std::size_t>(rank_));
}

// What is in flight in a broken run is abandoned: its processes are about to be ended.
MpiTransport::~MpiTransport() {
  if (parted()) {
    requests_.cancel();
    if (window_) {
      window_->free();
    }
    MPI_Comm_free(&comm_);
  }
}

void MpiTransport::send(const Message& message, Payload payload) {
  if (message.kind == MessageKind::kAllReduce) {
    return sums_.add(message);
  }
  if (!is_here(message.to)) {
    return send_away(message, std::move(payload));
  }
  world_.mailbox->post(Received{message, lend(message, std::move(payload), world_.mailbox)});
}

void MpiTransport::send_away(const Message& message, Payload payload) {
  check(!parting_, "nobody sends when nothing is in flight");
  ++count_.sent;
  const auto to = static_cast<int>(rank_of(message.to));
  const auto bytes = payload.bytes();
  const bool inlined = static_cast<Bytes>(bytes.size()) <= inline_bytes_;
  const std::size_t frame_bytes = kHeaderBytes + (inlined ? bytes.size() : 0);
  const auto frame = std::make_shared_for_overwrite<std::byte[]>(frame_bytes);
  std::ranges::copy(encode_header(message), frame.get());
  std::copy_n(bytes.data(), frame_bytes - kHeaderBytes, frame.get() + kHeaderBytes);
  const auto transfer = transfers_.insert(transfers_.end(), {message, true, world_.clock.now()});
  // Frame and payload live until the whole message is sent.
  const auto sent = [this, transfer, frame, payload](const MPI_Status&) {
    const Message message = transfer->message;
    transfers_.erase(transfer);
    confirm(message);
  };
  const auto send_payload = world_.awaits_receivers && !bytes.empty() ? MPI_Issend : MPI_Isend;
  MPI_Request request = MPI_REQUEST_NULL;
  (inlined ? send_payload : MPI_Isend)(frame.get(), static_cast<int>(frame_bytes), MPI_BYTE, to,
                                       kFrameTag, comm_, &request);
  if (inlined) {
    return requests_.add(request, sent);
  }
  requests_.add(request, [frame](const MPI_Status&) {});
  send_payload(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, kPayloadTag, comm_,
               &request);
  requests_.add(request, sent);
}

void MpiTransport::confirm(const Message& message) {
  world_.mailbox->post(Sent{message});
  if (message.wants_return) {
    world_.mailbox->post(Returned{message});
  }
}

// Nothing to do: the sender learns it from MPI.
void MpiTransport::accepted(const Message& /*message*/) {}

bool MpiTransport::begin_sums(Landing& landing) {
  bool begun = false;
  while (const auto request = sums_.begin()) {
    const std::span<float> place = landing.place(*request);
    const auto transfer = transfers_.insert(transfers_.end(), {*request, true, world_.clock.now()});
    begin_sum(place, [this, transfer, place] {
      sums_.end();
      world_.mailbox->post(Received{transfer->message, Payload(place, nullptr)});
      transfers_.erase(transfer);
    });
    begun = true;
  }
  return begun;
}

void MpiTransport::begin_sum(std::span<float> values, std::function<void()> done) {
  if (shared_sums_) {
    return shared_sums_->begin(values, std::move(done));
  }
  MPI_Request sum = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                 comm_, &sum);
  requests_.add(sum, [done = std::move(done)](const MPI_Status&) { done(); });
}

bool MpiTransport::progress(Landing& landing) {
  bool moved = begin_sums(landing);
  if (shared_sums_) {
    moved = shared_sums_->progress() || moved;
  }
  if (parting_ && !said_farewell_ && is_idle() && sums_.empty()) {
    say_farewell();
  }
  const bool calls = !world_.alarm || world_.alarm->calls();
  moved = (calls ? requests_.test() : requests_.collect()) || moved;
  while (const auto frame = std::exchange(arrived_, std::nullopt)) {
    on_frame(*frame, landing);
    await_frame();
    requests_.collect();
  }
  if (moved) {
    last_movement_ = world_.clock.now();
    vain_looks_ = 0;
  } else if (calls && world_.alarm && ++vain_looks_ > kVainLooks) {
    world_.alarm->pause(kShortNap);
  }
  return moved;
}

std::optional<Duration> MpiTransport::patience() const {
  const Duration silence = world_.clock.now() - last_movement_;
  if (shared_sums_ && !shared_sums_->empty() && silence < kAttention) {
    return Duration(0);
  }
  if (!is_idle() && world_.spins) {
    return Duration(0);
  }
  const Duration shortest = world_.alarm ? kWatchedNap : workers_wait() ? kBriefNap : kShortNap;
  const bool may_oversleep = is_idle() || world_.alarm;
  return std::clamp(silence / kNapsInSilence, shortest, may_oversleep ? kLongNap : kShortNap);
}

bool MpiTransport::workers_wait() const {
  return std::ranges::all_of(world_.gates,
                             [](const auto& gate) { return gate.second.position().waiting; });
}

bool MpiTransport::parted() const { return said_farewell_ && parted_peers_ == peers_ && is_idle(); }

void MpiTransport::await_frame() {
  MPI_Request request = MPI_REQUEST_NULL;
  const std::size_t size = kHeaderBytes + static_cast<std::size_t>(inline_bytes_);
  if (!incoming_) {
    incoming_ = std::make_shared_for_overwrite<std::byte[]>(kFrameOffset + size);
  }
  MPI_Irecv(incoming_.get() + kFrameOffset, static_cast<int>(size), MPI_BYTE, MPI_ANY_SOURCE,
            kFrameTag, comm_, &request);
  requests_.add(request, [this](const MPI_Status& status) { arrived_ = status; });
}

void MpiTransport::say_farewell() {
  said_farewell_ = true;
  for (int to = 0; to <= static_cast<int>(peers_); ++to) {
    if (to != rank_) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(nullptr, 0, MPI_BYTE, to, kFrameTag, comm_, &request);
      requests_.add(request, [](const MPI_Status&) {});
    }
  }
}

void MpiTransport::on_frame(const MPI_Status& status, Landing& landing) {
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  if (size == 0) {
    ++parted_peers_;
    return;
  }
  const std::span<const std::byte> frame(incoming_.get() + kFrameOffset,
                                         static_cast<std::size_t>(size));
  const Message message = decode(frame, status.MPI_SOURCE);
  if (message.payload_bytes > inline_bytes_) {
    return receive_payload(message, status.MPI_SOURCE, landing);
  }
  deliver(message, take_payload(message, frame.subspan(kHeaderBytes), landing));
}

void MpiTransport::deliver(const Message& message, const Payload& payload) {
  checks_->check_payload(message, payload.bytes());
  ++count_.received;
  world_.mailbox->post(Received{message, payload});
}

// Into the place that the protocol names. Where there is none, a long payload keeps the buffer that
// it came in, and a short one is copied.
Payload MpiTransport::take_payload(const Message& message, std::span<const std::byte> payload,
                                   Landing& landing) {
  if (payload.empty()) {
    return {};
  }
  const std::span<float> place = checks_->place(message, landing);
  if (!place.empty()) {
    std::memcpy(place.data(), payload.data(), payload.size());
    return {place, nullptr};
  }
  if (static_cast<Bytes>(payload.size()) < inline_bytes_ / 4) {
    return Payload::owning(std::vector(payload.begin(), payload.end()));
  }
  return {payload, std::exchange(incoming_, nullptr)};
}

void MpiTransport::receive_payload(const Message& message, int source, Landing& landing) {
  const std::span<float> place = checks_->place(message, landing);
  const auto size = static_cast<std::size_t>(message.payload_bytes);
  std::shared_ptr<std::byte[]> fresh;
  if (place.empty()) {
    fresh = std::make_shared_for_overwrite<std::byte[]>(size);
  }
  void* into = place.empty() ? static_cast<void*>(fresh.get()) : place.data();
  const auto transfer = transfers_.insert(transfers_.end(), {message, false, world_.clock.now()});
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(into, static_cast<int>(size), MPI_BYTE, source, kPayloadTag, comm_, &request);
  const Payload payload =
      place.empty() ? Payload(std::span(fresh.get(), size), fresh) : Payload(place, nullptr);
  requests_.add(request, [this, transfer, payload](const MPI_Status&) {
    const Message message = transfer->message;
    transfers_.erase(transfer);
    deliver(message, payload);
  });
}

// Nothing of the frame is used before it has been checked.
Message MpiTransport::decode(std::span<const std::byte> frame, int source) {
  const auto rank = static_cast<std::size_t>(source);
  const Message message = checks_->decode(frame.first(std::min(frame.size(), kHeaderBytes)), rank);
  const auto inlined = static_cast<Bytes>(frame.size() - kHeaderBytes);
  const bool follows = message.payload_bytes > inline_bytes_;
  if (inlined != (follows ? 0 : message.payload_bytes) ||
      message.payload_bytes > std::numeric_limits<int>::max()) {
    throw BadMessage(
        rank, fmt::format("it announces {} bytes and brings {}", message.payload_bytes, inlined));
  }
  return message;
}

}  // namespace sluice
