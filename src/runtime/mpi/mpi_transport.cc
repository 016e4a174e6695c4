#include "runtime/mpi/mpi_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "runtime/loan.h"

namespace sluice {
namespace {

constexpr int kFrameTag = 1;
constexpr int kPayloadTag = 2;

// A loop without work asks MPI again after a sixteenth of the time in which nothing moved, within
// these limits: a silence grows longer by so much at most.
const Duration kShortNap = from_us(50);
const Duration kLongNap = from_us(1000);
constexpr int kNapsInSilence = 16;

}  // namespace

MpiTransport::MpiTransport(World world)
    : world_(std::move(world)), sums_(world_.chunks.size(), world_.first + 1) {
  for (const Chunk& chunk : world_.chunks.all()) {
    if (chunk.range.size() * kFloatBytes > std::numeric_limits<int>::max()) {
      throw std::runtime_error(
          fmt::format("a piece of {} parameters is more than MPI moves at once; cut the layers "
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
  await_frame();
}

// What is under way in a broken run stays behind: its processes are about to be ended.
MpiTransport::~MpiTransport() {
  if (parted()) {
    MPI_Cancel(&incoming_request_);
    MPI_Wait(&incoming_request_, MPI_STATUS_IGNORE);
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
  if (parting_) {
    return confirm(message);
  }
  const Header header = encode_header(message);
  auto frame = std::make_shared<Frame>(header.begin(), header.end());
  const auto to = static_cast<int>(rank_of(message.to));
  const auto transfer = transfers_.insert(transfers_.end(), {message, true, world_.clock.now()});
  // Frame and payload are held until all of the message is sent.
  const auto sent = [this, transfer, frame, payload](const MPI_Status&) {
    const Message message = transfer->message;
    transfers_.erase(transfer);
    confirm(message);
  };
  const auto bytes = payload.bytes();
  const bool inlined = bytes.size() <= kInlineBytes;
  if (inlined) {
    frame->insert(frame->end(), bytes.begin(), bytes.end());
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const auto send_frame = inlined && !bytes.empty() ? MPI_Issend : MPI_Isend;
  send_frame(frame->data(), static_cast<int>(frame->size()), MPI_BYTE, to, kFrameTag, comm_,
             &request);
  if (inlined) {
    return requests_.add(request, sent);
  }
  requests_.add(request, [frame](const MPI_Status&) {});
  MPI_Issend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, kPayloadTag, comm_,
             &request);
  requests_.add(request, sent);
}

void MpiTransport::confirm(const Message& message) {
  world_.mailbox->post(Sent{message});
  if (message.wants_return) {
    world_.mailbox->post(Returned{message});
  }
}

// The sender has learnt it from MPI.
void MpiTransport::accepted(const Message& /*message*/) {}

bool MpiTransport::begin_sums(Landing& landing) {
  bool begun = false;
  while (const auto request = sums_.begin()) {
    const std::span<float> place = landing.place(*request);
    const auto transfer = transfers_.insert(transfers_.end(), {*request, true, world_.clock.now()});
    MPI_Request sum = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, place.data(), static_cast<int>(place.size()), MPI_FLOAT, MPI_SUM,
                   comm_, &sum);
    requests_.add(sum, [this, transfer, place](const MPI_Status&) {
      sums_.end();
      world_.mailbox->post(Received{transfer->message, Payload(place, nullptr)});
      transfers_.erase(transfer);
    });
    begun = true;
  }
  return begun;
}

bool MpiTransport::progress(Landing& landing) {
  bool moved = begin_sums(landing);
  if (parting_ && !said_farewell_ && requests_.empty() && sums_.empty()) {
    say_farewell();
  }
  for (int arrived = 1; arrived != 0;) {
    MPI_Status status{};
    MPI_Test(&incoming_request_, &arrived, &status);
    if (arrived != 0) {
      on_frame(status, landing);
      await_frame();
      moved = true;
    }
  }
  moved = requests_.test() || moved;
  if (moved) {
    last_movement_ = world_.clock.now();
  }
  return moved;
}

std::optional<Duration> MpiTransport::patience() const {
  if (!requests_.empty()) {
    return world_.spins ? Duration(0) : kShortNap;
  }
  return std::clamp((world_.clock.now() - last_movement_) / kNapsInSilence, kShortNap, kLongNap);
}

bool MpiTransport::parted() const {
  return said_farewell_ && parted_peers_ == peers_ && requests_.empty();
}

void MpiTransport::await_frame() {
  MPI_Irecv(incoming_.data(), static_cast<int>(incoming_.size()), MPI_BYTE, MPI_ANY_SOURCE,
            kFrameTag, comm_, &incoming_request_);
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
  const std::span<const std::byte> frame(incoming_.data(), static_cast<std::size_t>(size));
  const Message message = decode(frame, status.MPI_SOURCE);
  if (message.payload_bytes > static_cast<Bytes>(kInlineBytes)) {
    return receive_payload(message, status.MPI_SOURCE, landing);
  }
  const auto payload = frame.subspan(kHeaderBytes);
  world_.mailbox->post(
      Received{message, payload.empty() ? Payload()
                                        : Payload::owning(Frame(payload.begin(), payload.end()))});
}

// The place that the protocol names is free from the frame on: its owner has long let go of what
// this message answers or completes.
void MpiTransport::receive_payload(const Message& message, int source, Landing& landing) {
  const std::span<float> place = landing.place(message);
  const auto size = static_cast<std::size_t>(message.payload_bytes);
  if (!place.empty() && place.size_bytes() != size) {
    throw std::runtime_error(
        fmt::format("rank {} sent {} bytes where {} belong", source, size, place.size_bytes()));
  }
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
    world_.mailbox->post(Received{message, payload});
  });
}

Message MpiTransport::decode(std::span<const std::byte> frame, int source) const {
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("a message of rank {} is not right: {}", source, why));
  };
  const auto decoded = decode_header(frame.first(std::min(frame.size(), kHeaderBytes)));
  if (!decoded) {
    refuse(decoded.error().message());
  }
  const Message message = *decoded;
  const std::size_t nodes = world_.topology.nodes();
  if (message.from.index() >= nodes || rank_of(message.from) != static_cast<std::size_t>(source)) {
    refuse(fmt::format("it says that it comes from node {}", message.from.index()));
  }
  if (message.to.index() >= nodes || !is_here(message.to)) {
    refuse(fmt::format("it is for node {}, which is not here", message.to.index()));
  }
  if (message.chunk.index() >= world_.chunks.size()) {
    refuse(fmt::format("it is about piece {} of {}", message.chunk.index(), world_.chunks.size()));
  }
  const auto inlined = static_cast<Bytes>(frame.size() - kHeaderBytes);
  const bool follows = message.payload_bytes > static_cast<Bytes>(kInlineBytes);
  if (inlined != (follows ? 0 : message.payload_bytes) ||
      message.payload_bytes > std::numeric_limits<int>::max()) {
    refuse(fmt::format("it announces {} bytes and brings {}", message.payload_bytes, inlined));
  }
  return message;
}

}  // namespace sluice
