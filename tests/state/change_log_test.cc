#include "state/change_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ChangeLogTest : public ::testing::Test {
 protected:
  void change(const Range& range, const std::vector<std::uint32_t>& positions) {
    change(log_, range, positions);
  }
  static void change(ChangeLog& log, const Range& range,
                     const std::vector<std::uint32_t>& positions) {
    const std::vector<float> values(static_cast<std::size_t>(range.size()), 1.0F);
    const auto bytes = encode_sparse(values, positions);
    log.note(range, *SparseView::parse(bytes, range.size()));
  }

  ChangeLog log_{20};
};

TEST_F(ChangeLogTest, TellsEachReaderWhatItHasMissed) {
  const Range range{0, 10};
  EXPECT_THAT(log_.news(NodeId(0), range), IsEmpty());
  change(range, {2, 5});
  EXPECT_THAT(log_.news(NodeId(0), range), ElementsAre(2, 5));
  EXPECT_THAT(log_.news(NodeId(0), range), IsEmpty());
  change(range, {5, 7});
  EXPECT_THAT(log_.news(NodeId(1), range), ElementsAre(2, 5, 7));
  EXPECT_THAT(log_.news(NodeId(0), range), ElementsAre(5, 7));
}

TEST_F(ChangeLogTest, KeepsRangesApart) {
  change({0, 10}, {1});
  change({10, 20}, {3});
  EXPECT_THAT(log_.news(NodeId(0), {0, 10}), ElementsAre(1));
  EXPECT_THAT(log_.news(NodeId(0), {10, 20}), ElementsAre(3));
}

TEST_F(ChangeLogTest, AReaderThatIsTreatedLikeAnotherMissesWhatThatOneMisses) {
  change({0, 10}, {1});
  log_.news(NodeId(0), {0, 10});
  change({0, 10}, {2});
  change({10, 20}, {3});
  log_.news(NodeId(1), {0, 10});
  log_.news(NodeId(1), {10, 20});
  log_.treat_alike(NodeId(1), NodeId(0));
  EXPECT_THAT(log_.news(NodeId(1), {0, 10}), ElementsAre(2));
  EXPECT_THAT(log_.news(NodeId(1), {10, 20}), ElementsAre(3));
  EXPECT_THAT(log_.news(NodeId(0), {0, 10}), ElementsAre(2)) << "the other one is as it was";
}

TEST_F(ChangeLogTest, CountsBeyond32Bits) {
  ChangeLog log(20, 0xffff'fffe);
  const Range range{0, 10};
  change(log, range, {1});
  EXPECT_THAT(log.news(NodeId(0), range), ElementsAre(1));
  for (const std::uint32_t position : {2, 3, 4}) {
    change(log, range, {position});
    EXPECT_THAT(log.news(NodeId(0), range), ElementsAre(position));
  }
}

}  // namespace
}  // namespace sluice
