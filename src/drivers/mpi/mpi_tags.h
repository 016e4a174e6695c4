#pragma once

namespace sluice {

// Tags of the messages on MPI_COMM_WORLD itself.
enum MpiTag : int {
  kTextTag = 1,  // ProcessWorld
  kMeetTag,
  kHeartbeatTag,
  kHelloTag,  // surveys
  kHeardTag,
  kReachTag,
  kOrderTag,
  kResultTag,
  kCommandTag,  // ping-pong
  kPingPongTag,
  kAnswerTag,
};

}  // namespace sluice
