#pragma once

namespace sluice {

// Of the messages on MPI_COMM_WORLD itself.
enum MpiTag : int {
  kTextTag = 1,  // MpiWorld
  kMeetTag,
  kHelloTag,  // surveys
  kHeardTag,
  kReachTag,
  kOrderTag,
  kResultTag,
  kCommandTag,  // strokes
  kStrokeTag,
  kAnswerTag,
};

}  // namespace sluice
