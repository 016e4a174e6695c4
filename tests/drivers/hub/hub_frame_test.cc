#include "drivers/hub/hub_frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace sluice {
namespace {

HubFrame any_frame() {
  using Kind = HubFrame::Kind;
  return {
      .kind = *rc::gen::element(Kind::kHello, Kind::kText, Kind::kToAll, Kind::kBeat, Kind::kLost,
                                Kind::kHeard, Kind::kOutlive, Kind::kBeginning, Kind::kReady,
                                Kind::kAdmit, Kind::kSignal, Kind::kFail, Kind::kEnd, Kind::kBye),
      .rank = *rc::gen::arbitrary<std::uint32_t>(),
      .channel = *rc::gen::arbitrary<std::uint32_t>(),
      .text = *rc::gen::arbitrary<std::string>()};
}

RC_GTEST_PROP(HubFrameProperty, AStreamGivesItsFramesHoweverItIsCut, ()) {
  std::vector<HubFrame> sent;
  std::string stream;
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    sent.push_back(any_frame());
    stream += encode(sent.back());
  }
  std::vector<HubFrame> came;
  HubFrameReader reader;
  while (!stream.empty()) {
    const auto cut = *rc::gen::inRange<std::size_t>(1, stream.size() + 1);
    reader.add(stream.substr(0, cut));
    stream.erase(0, cut);
    while (auto frame = reader.next()) {
      came.push_back(*std::move(frame));
    }
  }
  RC_ASSERT(came == sent);
}

TEST(HubFrame, WhatIsNoneIsRefusedAtOnce) {
  HubFrameReader reader;
  reader.add("G");
  EXPECT_THROW(reader.next(), std::runtime_error);
}

TEST(HubFrame, ATextThatIsTooLongIsRefusedBeforeItComes) {
  const std::string bytes = encode({.kind = HubFrame::Kind::kHello, .text = std::string(33, 'x')});
  HubFrameReader reader;
  reader.add(bytes.substr(0, 17));
  EXPECT_THROW(reader.next(32), std::runtime_error);
}

}  // namespace
}  // namespace sluice
